//! Reads what a worker says and reports it. One task per stream; a read may carry many messages,
//! and they cross the driver together.

use std::future::poll_fn;
use std::os::unix::net::UnixStream as StdStream;
use std::sync::Arc;

use ostler_core::Event;
use ostler_proto::{Decoder, FromWorker, Limits, LogLevel, Wire};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::task::JoinSet;

use crate::driver::Driver;
use crate::link::{Link, Offence, Reaction};
use crate::outbox::Outbox;
use crate::output::Stream as OutputStream;

/// Which of a worker's streams came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Data,
    Control,
}

/// Takes up the inherited streams of a process.
pub(crate) fn start(
    driver: &Arc<Driver>,
    link: &Arc<Link>,
    data: StdStream,
    control: Option<StdStream>,
    tasks: &mut JoinSet<Stream>,
) {
    if let Some(Ok(control)) = control.map(UnixStream::from_std) {
        let (read, write) = control.into_split();
        link.connect_control(write);
        tasks.spawn(follow_control(Arc::clone(driver), Arc::clone(link), read));
    }
    let Ok(data) = UnixStream::from_std(data) else { return };
    let (read, write) = data.into_split();
    link.connect_data(write);
    let decoder = Decoder::opening(link.limits);
    tasks.spawn(follow_data(Arc::clone(driver), Arc::clone(link), read, decoder, None));
}

pub(crate) async fn follow_data(
    driver: Arc<Driver>,
    link: Arc<Link>,
    mut stream: OwnedReadHalf,
    mut decoder: Decoder,
    first: Option<FromWorker>,
) -> Stream {
    let mut events = Vec::new();
    let opening = match first {
        Some(message) => take_in(&driver, &link, message, &mut events).await,
        None => Ok(()),
    };
    let attend = attend_outbox(&driver, &link, link.data());
    let read = async {
        opening?;
        read_all(&driver, &link, &mut stream, &mut decoder, &mut events).await
    };
    tokio::select! {
        ended = read => conclude(&driver, &link, ended),
        () = attend => {}
    }
    Stream::Data
}

/// The control stream is binary or lines, as `ready` on the data stream says; nothing comes on it
/// before that.
pub(crate) async fn follow_control(
    driver: Arc<Driver>,
    link: Arc<Link>,
    mut stream: OwnedReadHalf,
) -> Stream {
    let mut decoder = Decoder::new(Wire::Binary, link.limits);
    let attend = attend_outbox(&driver, &link, link.control());
    let read = async {
        if stream.readable().await.is_ok() {
            decoder.set_wire(link.wire().unwrap_or(Wire::Binary));
        }
        read_all(&driver, &link, &mut stream, &mut decoder, &mut Vec::new()).await
    };
    tokio::select! {
        ended = read => conclude(&driver, &link, ended),
        () = attend => {}
    }
    Stream::Control
}

async fn attend_outbox(driver: &Driver, link: &Link, outbox: Option<&Outbox>) {
    let Some(outbox) = outbox else { return std::future::pending().await };
    outbox.attend(link, |unsent| driver.report_all(&mut link.reject(unsent))).await;
    // The stream is closed for writing; reading tells what that means.
    std::future::pending().await
}

async fn read_all(
    driver: &Driver,
    link: &Arc<Link>,
    stream: &mut OwnedReadHalf,
    decoder: &mut Decoder,
    events: &mut Vec<Event>,
) -> Result<(), Offence> {
    loop {
        let understood = take_in_all(driver, link, decoder, events).await;
        // What came before an offence counts.
        driver.report_all(events);
        understood?;
        // A peer that closes with unread data resets the connection: the end, like any other.
        match stream.read_buf(decoder.space()).await {
            Ok(0) | Err(_) => return Ok(()),
            Ok(_) => events.extend(link.heard()),
        }
    }
}

async fn take_in_all(
    driver: &Driver,
    link: &Arc<Link>,
    decoder: &mut Decoder,
    events: &mut Vec<Event>,
) -> Result<(), Offence> {
    while let Some(message) = decoder.next().map_err(|violation| violation.to_string())? {
        take_in(driver, link, message, events).await?;
    }
    Ok(())
}

pub(crate) async fn take_in(
    driver: &Driver,
    link: &Arc<Link>,
    message: FromWorker,
    events: &mut Vec<Event>,
) -> Result<(), Offence> {
    if let FromWorker::Ready(ready) = &message {
        driver.launcher.learn(ready);
    }
    match link.on_message(message)? {
        Reaction::Nothing => {}
        Reaction::Report(event) => events.push(event),
        Reaction::Grant(grant) => events.extend(grant.link.grant(grant.wire_id, grant.credit)),
        Reaction::CallBack(call) => driver.call_back(link, *call),
        Reaction::Progress(exchange) => driver.note_progress(link, &exchange),
        Reaction::Metric(metric) => driver.note_metric(*metric),
        Reaction::Saved(session, state) => driver.keep_state(link.process, session, state),
        Reaction::WaitFor(exchange) => {
            driver.report_all(events);
            poll_fn(|cx| exchange.poll_room(cx)).await;
        }
    }
    Ok(())
}

fn conclude(driver: &Driver, link: &Link, ended: Result<(), Offence>) {
    if let Err(offence) = ended {
        tracing::warn!(worker = &*link.name, "protocol violation: {offence}");
        let text = format!("protocol violation: {offence}");
        let generation = link.process.generation;
        link.output.note(OutputStream::Log, LogLevel::Error, generation, None, text);
        driver.report(Event::ProtocolViolated { process: link.process });
    }
}

pub(crate) fn limits(max_body: u64, max_line: u64) -> Limits {
    let clamp = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    Limits { max_frame: clamp(max_body.saturating_add(4 << 10)), max_line: clamp(max_line) }
}
