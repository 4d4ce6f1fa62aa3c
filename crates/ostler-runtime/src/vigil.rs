//! What nobody reports by itself: how much memory the workers have, and how much the machine has
//! left. Looked at once in a while, more often where there is a limit.

use std::sync::Arc;
use std::time::Duration;

use ostler_core::{Event, ProcessId};

use crate::driver::Driver;
use crate::memory::Census;
use crate::pressure::{Pressure, Strain};

const OFTEN: Duration = Duration::from_secs(1);
const SELDOM: Duration = Duration::from_secs(5);

pub(crate) async fn keep(driver: Arc<Driver>) {
    let mut census = match Census::new() {
        Ok(census) => census,
        Err(error) => {
            let pool = driver.launcher.pool();
            return tracing::error!(pool, "memory cannot be measured: {error}");
        }
    };
    let pressure = Pressure::find();
    let mut strain = Strain::default();
    loop {
        let limited = driver.look(|core, _| {
            let settings = core.settings();
            settings.max_memory.is_some() || settings.max_memory_hard.is_some()
        });
        tokio::time::sleep(if limited { OFTEN } else { SELDOM }).await;
        let workers: Vec<(ProcessId, i32)> =
            driver.look(|_, links| links.values().map(|link| (link.process, link.pid)).collect());
        if !workers.is_empty() {
            let counted = tokio::task::spawn_blocking(move || {
                let sizes = census.take(&workers);
                (census, sizes)
            });
            let Ok((kept, sizes)) = counted.await else { return };
            census = kept;
            let measured = |(process, bytes)| Event::MemoryMeasured { process, bytes };
            driver.report_all(&mut sizes.into_iter().map(measured).collect());
        }
        let now = strain.after(pressure.read(), pressure.room());
        if now.is_high() != strain.is_high() {
            driver.report(Event::PressureChanged { high: now.is_high() });
        }
        strain = now;
    }
}
