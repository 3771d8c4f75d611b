//! The async shell through its public API.

use std::time::Duration;

use lariat_queue::{Add, Verdict, Work, WorkQueue};

mod busy;
mod client_go;
mod crowds;
mod waiting;
mod wakeups;

const SECOND: Duration = Duration::from_secs(1);

type Queue = WorkQueue<u32>;

async fn get_and_done(queue: &Queue) -> u32 {
    let work = queue.get().await.expect("the queue is open");
    let key = *work.key();
    work.done();
    key
}

#[test]
fn public_types_are_send_and_sync() {
    fn check<T: Send + Sync + 'static>() {}
    check::<WorkQueue<String>>();
    check::<Work<String>>();
    check::<Add>();
    check::<Verdict<()>>();
}
