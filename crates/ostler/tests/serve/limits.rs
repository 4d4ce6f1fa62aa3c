//! Bodies, descriptors and pools at their limits: each costs its own client only.

use std::io::Write;
use std::net::TcpStream;
use std::process::Command;

use super::http::{get, post, request};
use super::server::{Server, Site, until};

const GREET: &str = "/api/pools/work/call/greet";
const REVERSE: &str = "/api/pools/work/call/reverse";

fn serves(server: &Server) {
    assert_eq!(server.ask(&post(GREET, "")).text(), r#""hello, world""#);
}

#[test]
fn a_body_in_pieces_arrives_whole() {
    let server = Site::new().serve();
    let answer = server.ask(&post(GREET, r#"{"name": "Ada"}"#).in_pieces(4));
    assert_eq!(answer.text(), r#""hello, Ada""#);
}

#[test]
fn a_body_in_pieces_has_the_same_limit() {
    let server = Site::configured("max_body = \"2 KiB\"", "").serve();
    let large = post(GREET, &"x".repeat(4096)).in_pieces(512);
    server.ask(&large).problem(413, "body_too_large");
    serves(&server);
}

#[test]
fn a_refusal_reaches_a_client_whose_body_nobody_read() {
    let server = Site::new().serve();
    let body = format!("[\"{}\"]", "x".repeat(100_000));
    for size in [10, 10_000, 100_000] {
        let body = &body[..size];
        let post = |path| post(path, body);
        server.ask(&post("/api/pools/none/call/f")).problem(404, "pool_not_found");
        server.ask(&post("/nowhere")).problem(404, "not_found");
        server.ask(&request("PUT", GREET).body(body)).problem(405, "method_not_allowed");
        server.ask(&post(GREET).header("Host", "evil.example")).problem(403, "host_not_allowed");
        let timeout = post(GREET).header("Ostler-Timeout", "soon");
        server.ask(&timeout).problem(400, "malformed");
        let pieces = post("/api/pools/none/call/f").in_pieces(4096);
        server.ask(&pieces).problem(404, "pool_not_found");
    }
}

#[test]
fn requests_that_were_sent_ahead_are_answered_in_their_order() {
    let server = Site::new().serve();
    let mut sent = post(GREET, r#"["0"]"#).send(server.address);
    for number in 1..50 {
        sent.then(&post(GREET, &format!("[\"{number}\"]")));
    }
    for number in 0..50 {
        assert_eq!(sent.answer().text(), format!("\"hello, {number}\""));
    }
}

#[test]
fn a_client_that_leaves_in_the_middle_of_its_body_runs_nothing() {
    let server = Site::new().serve();
    serves(&server);
    let arrived = server.pool()["requests"]["arrived"].as_u64().expect("a number");
    let cut = post("/api/pools/work/call/hold", r#"["never"]"#).cut_short(2);
    drop(cut.send(server.address));
    serves(&server);
    assert_eq!(server.pool()["requests"]["arrived"], arrived + 1);
    assert!(server.site.lines("begun").is_empty());
}

#[test]
fn a_large_body_goes_through_and_a_larger_result_comes_back() {
    let server = Site::new().serve();
    let bytes = vec![7; 48 << 20];
    let large = request("POST", REVERSE).header("Content-Type", "image/png").body(&bytes);
    let answer = server.ask(&large);
    assert_eq!((answer.status, answer.body.len()), (200, bytes.len()));
}

#[test]
fn a_body_far_over_the_limit_gets_its_answer_all_the_same() {
    let server = Site::configured("max_body = \"2 KiB\"", "").serve();
    let mut stream = TcpStream::connect(server.address).expect("it listens");
    let head =
        format!("POST {GREET} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("written");
    stream.write_all(&[b'x'; 8192]).expect("written");
    super::http::Sent::of(stream).answer().problem(413, "body_too_large");
    serves(&server);
}

#[test]
fn a_server_out_of_descriptors_serves_again_when_clients_leave() {
    let site = Site::new();
    let served = site.serve_command();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "ulimit -n 80; exec \"$@\"", "sh"]).arg(served.get_program());
    command.args(served.get_args()).current_dir(site.path());
    let server = site.serve_by(command);
    serves(&server);
    let crowd: Vec<TcpStream> =
        (0..120).map(|_| TcpStream::connect(server.address).expect("the kernel accepts")).collect();
    let descriptors =
        || std::fs::read_dir(format!("/proc/{}/fd", server.pid())).map_or(0, Iterator::count);
    until("it has no descriptor left", || descriptors() >= 79);
    drop(crowd);
    until("it has some again", || descriptors() < 60);
    serves(&server);
}

const TWO_POOLS: &str = r#"
[pools.work]
python = "work.py"
size = 1
[pools.broken]
command = ["/bin/sh", "-c", "echo out of order >&2; exit 3"]
size = 1
restart_max = 1
backoff_min = "1 ms"
"#;

#[test]
fn a_pool_that_fails_does_not_touch_the_others() {
    let server = Site::with_pools(TWO_POOLS).serve();
    let answer = server.ask(&post("/api/pools/broken/call/f", ""));
    let problem = answer.problem(503, "pool_failed");
    assert!(problem.to_string().contains("out of order"), "{problem}");
    assert!(answer.header("retry-after").is_some());
    serves(&server);
    let ready = server.ask(&get("/readyz"));
    assert_eq!(ready.status, 503);
    assert_eq!(ready.json()["waiting_for"][0]["name"], "broken");
    assert_eq!(server.site.run(&["status"]).0, 4);
}

#[test]
fn a_worker_in_a_shell_serves_over_http_and_what_it_was_told_stays_with_it() {
    let pools = r#"
[pools.sh]
command = ["/bin/sh", "./worker.sh"]
size = 1
env = { SECRET = "sesame" }
"#;
    let site = Site::with_pools(pools);
    let script = r#"printf '%s\n' '{"type":"ready"}' >&3
while read -r line <&3; do
    id=${line#*'"requestId":"'}; id=${id%%'"'*}
    printf '{"type":"complete","requestId":"%s","result":["%s","%s"]}\n' "$id" "$SECRET" "$HIDDEN" >&3
done"#;
    std::fs::write(site.path().join("worker.sh"), script).expect("written");
    let mut command = site.serve_command();
    command.env("HIDDEN", "not passed on");
    let server = site.serve_by(command);
    let answer = server.ask(&post("/api/pools/sh/call/any", ""));
    assert_eq!(answer.text(), r#"["sesame",""]"#);
    let told = server.ask(&get("/api/stats")).text() + &server.ask(&get("/api/pools/sh")).text();
    assert!(!told.contains("sesame"), "{told}");
}
