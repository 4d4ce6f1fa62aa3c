//! The ends that a server asks for. Each of these checks uses a process up.

use ostler_proto::{FromWorker, ToWorker};

use super::super::bench::{Bench, query};
use super::super::finding::{Fault, Judged};
use super::super::subject::{Process, Subject};

pub(super) async fn graceful(bench: &mut Bench<'_>) -> Judged {
    let mut subject = bench.take_subject().await?;
    subject.send(ToWorker::Shutdown { graceful: true }).await;
    let ended = subject.last_messages().await;
    let code = subject.exit_code();
    subject.clear().await;
    let acknowledged = ended?.contains(&FromWorker::ShutdownAck);
    match (acknowledged, code) {
        (true, Some(0)) => Ok("shutdown_ack, exit code 0".to_owned()),
        (false, Some(0)) => Err(Fault::failed("exit code 0 without shutdown_ack")),
        (_, Some(code)) => Err(Fault::failed(format!("exit code {code}"))),
        (_, None) => Err(Fault::failed("it was ended by a signal")),
    }
}

pub(super) async fn finishes(bench: &mut Bench<'_>) -> Judged {
    let plan = bench.plan;
    bench.caller().await?;
    let mut subject = bench.take_subject().await?;
    let query = query(plan, &mut subject, &plan.call);
    let id = query.id;
    subject.send(query).await;
    subject.send(ToWorker::Shutdown { graceful: true }).await;
    let ended = subject.last_messages().await;
    let answered = subject.ledger.terminal(id).cloned();
    subject.clear().await;
    let messages = ended?;
    let place = |wanted: fn(&FromWorker) -> bool| messages.iter().position(wanted);
    let terminal = place(is_terminal);
    let acknowledged = place(|message| *message == FromWorker::ShutdownAck);
    match (answered, acknowledged) {
        (None, _) => Err(Fault::failed("it left without answering the call")),
        (Some(_), Some(at)) if terminal.is_some_and(|terminal| terminal > at) => {
            Err(Fault::failed("shutdown_ack came before the answer"))
        }
        (Some(terminal), _) => Ok(format!("{terminal}, then the end")),
    }
}

fn is_terminal(message: &FromWorker) -> bool {
    use FromWorker::{Cancelled, Complete, Error};
    matches!(message, Complete { .. } | Error { .. } | Cancelled { .. })
}

pub(super) async fn immediate(bench: &mut Bench<'_>) -> Judged {
    let plan = bench.plan;
    let mut subject = bench.take_subject().await?;
    if let Some(slow) = &plan.slow {
        let query = query(plan, &mut subject, slow);
        subject.send(query).await;
    }
    subject.send_urgently(ToWorker::Shutdown { graceful: false }).await;
    let ended = subject.last_messages().await;
    subject.clear().await;
    match ended {
        Ok(_) if plan.slow.is_some() => Ok("it ended inside a slow call".to_owned()),
        Ok(_) => Ok("it ended".to_owned()),
        Err(trouble) => Err(trouble.into()),
    }
}

pub(super) async fn end_of_stream(bench: &mut Bench<'_>) -> Judged {
    let subject = bench.take_subject().await?;
    let process = subject.hang_up();
    ends(bench, process).await
}

pub(super) async fn end_of_control(bench: &mut Bench<'_>) -> Judged {
    if !bench.subject().await?.has_control() {
        return Err(Fault::skipped("it has no control stream"));
    }
    let mut subject: Subject = bench.take_subject().await?;
    subject.hang_up_control();
    let ended = subject.last_messages().await;
    subject.clear().await;
    ended.map(|_| "it ended".to_owned()).map_err(Fault::from)
}

async fn ends(bench: &Bench<'_>, mut process: Process) -> Judged {
    let limit = bench.plan.timeout;
    let ended = tokio::time::timeout(limit, process.exited()).await;
    process.clear().await;
    match ended {
        Ok(()) => Ok("it ended".to_owned()),
        Err(_) => Err(Fault::failed(format!("it lives {limit:?} after its stream"))),
    }
}
