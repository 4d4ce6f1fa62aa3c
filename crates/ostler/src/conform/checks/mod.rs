//! The checks themselves, by group. Each asks the worker something and says what came.
//!
//! That nothing more came is known by a later answer (a *fence*), not by waiting: a worker writes
//! what it has to say of one call before it answers the next.

mod calls;
mod cancel;
mod health;
mod opening;
mod robustness;
mod shutdown;
mod streams;

use super::bench::Bench;
use super::check::Check;
use super::finding::Judged;

pub(super) async fn perform(check: Check, bench: &mut Bench<'_>) -> Judged {
    match check {
        // What there is to see of it was seen when the process was opened.
        Check::ReadyFirst => Ok("it came".to_owned()),
        Check::ReadyValid => opening::ready_valid(bench).await,
        Check::Token => opening::token(bench).await,
        Check::WireOffered => opening::wire_offered(bench).await,
        Check::StreamClean => opening::stream_clean(bench).await,
        Check::AnsweredOnce => calls::answered_once(bench).await,
        Check::InSequence => calls::in_sequence(bench).await,
        Check::IdsEchoed => calls::ids_echoed(bench).await,
        Check::Capacity => calls::capacity(bench).await,
        Check::Overlap => calls::overlap(bench).await,
        Check::UnknownFunction => calls::unknown_function(bench).await,
        Check::BadPayload => calls::bad_payload(bench).await,
        Check::Chunks => streams::chunks(bench).await,
        Check::Credit => streams::credit(bench).await,
        Check::CancelRunning => cancel::running(bench).await,
        Check::CancelStream => cancel::stream(bench).await,
        Check::CancelUnknown => cancel::unknown(bench).await,
        Check::Withdraw => cancel::withdraw(bench).await,
        Check::Health => health::health_check(bench).await,
        Check::Ping => health::ping(bench).await,
        Check::Graceful => shutdown::graceful(bench).await,
        Check::Finishes => shutdown::finishes(bench).await,
        Check::Immediate => shutdown::immediate(bench).await,
        Check::EndOfStream => shutdown::end_of_stream(bench).await,
        Check::EndOfControl => shutdown::end_of_control(bench).await,
        Check::UnknownType => robustness::unknown_type(bench).await,
        Check::UnknownKeys => robustness::unknown_keys(bench).await,
        Check::SplitMessage => robustness::split_message(bench).await,
        Check::JoinedMessages => robustness::joined_messages(bench).await,
        Check::Resemblance => robustness::resemblance(bench).await,
        Check::LargeMessage => robustness::large_message(bench).await,
    }
}
