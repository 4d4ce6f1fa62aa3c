//! How requests end: the core says what, the exchange is told, the chronicle remembers.

use ostler_core::{Outcome, Refusal, RequestId, Time};

use super::Inner;
use crate::chronicle::Ended;
use crate::exchange::Exchange;
use crate::failure::{CallError, Failure, Refused};

/// Lines of a dead worker's stderr that its callers get to see.
const STDERR_LINES: usize = 20;

impl Inner {
    pub(super) fn resolve(&mut self, pool: u64, now: Time, request: RequestId, outcome: Outcome) {
        let Some(exchange) = self.exchanges.remove(&request) else { return };
        let condition = || exchange.link().and_then(|(link, _)| link.condition());
        let ended = match outcome {
            Outcome::Answered => exchange.deliver_answer(now),
            Outcome::Cancelled { started } => {
                exchange.finish(Err(Failure::Cancelled { started }.into()), now)
            }
            Outcome::TimedOut { phase, started } => {
                let condition = condition();
                exchange.finish(Err(Failure::TimedOut { phase, started, condition }.into()), now)
            }
            Outcome::Lost { exit, reason, started } => {
                let link = exchange.link().map(|(link, _)| link);
                let failure = Failure::Crashed {
                    worker: link.as_ref().map_or_else(String::new, |link| link.name.to_string()),
                    exit,
                    reason,
                    started,
                    stderr: link.map_or_else(Vec::new, |link| link.last_words(STDERR_LINES)),
                    chunks: exchange.delivered(),
                    condition: condition(),
                };
                exchange.finish(Err(failure.into()), now)
            }
        };
        self.remember(pool, &exchange, ended);
    }

    pub(super) fn refuse(&mut self, pool: u64, now: Time, request: RequestId, refused: Refused) {
        if let Some(exchange) = self.exchanges.remove(&request) {
            let ended = exchange.finish(Err(CallError::Refused(refused)), now);
            self.remember(pool, &exchange, ended);
        }
    }

    fn remember(&mut self, pool: u64, exchange: &Exchange, ended: Ended) {
        self.chronicle.ended(ended, || exchange.name(pool));
    }
}

pub(super) fn refused(refusal: Refusal, why: Option<String>) -> Refused {
    match (refusal, why) {
        (Refusal::PoolFailed, Some(why)) => Refused::PoolFailed { why },
        (refusal, _) => Refused::Pool(refusal),
    }
}
