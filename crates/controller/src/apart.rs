//! Work that blocked workers cannot delay: a runtime on a thread of its own.

use std::future::Future;
use std::sync::Arc;
use std::thread;

use lariat_core::clock;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, RuntimeFlavor};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::dispatcher::{self, Dispatch};
use tracing::subscriber::NoSubscriber;

/// Runs a future on a thread of its own, which handlers cannot block.
///
/// A handler that blocks a thread of the program's runtime delays timers and sockets of that runtime, in the worst case
/// all of them. The thread has a runtime with one worker, on which the future is polled, with all that it spawns. It
/// ends when the future does. Objects that belong to another runtime, such as sockets and clients with a task of their
/// own, are still driven there.
///
/// On a runtime with one thread the future runs in place, since paused time and simulations need it there. It also does
/// if no thread can be started.
///
/// ```
/// use lariat::controller::run_apart;
///
/// # async fn example() {
/// run_apart("probes", async { println!("{:?}", std::thread::current().name()) }).await;
/// # }
/// ```
///
/// # Panics
///
/// Outside a tokio runtime.
///
/// # Cancel safety
///
/// Dropping the future drops the other one on its thread, and does not wait for that.
pub async fn run_apart(name: &str, work: impl Future<Output = ()> + Send + 'static) {
    if !is_apart() {
        return work.await;
    }
    // Shared, so that the work is not lost if the thread or its runtime cannot be started.
    let work = Arc::new(Mutex::new(Some(work)));
    let abandoned = CancellationToken::new();
    let (ending, ended) = oneshot::channel();
    let (given, until) = (Arc::clone(&work), abandoned.clone());
    let subscriber = dispatcher::get_default(Clone::clone);
    let on_thread = move || {
        logging_to(&subscriber, || drive(&given, until));
        let _ = ending.send(());
    };
    let started = thread::Builder::new()
        .name(name.to_owned())
        .spawn(on_thread);
    // Dropped with this future, which ends the thread.
    let _abandon = abandoned.drop_guard();
    let is_done = started.is_ok() && ended.await.is_ok();
    let left = work.lock().take();
    match left {
        Some(work) => {
            tracing::warn!(
                "no thread for {name} can be started; it shares the runtime of the handlers"
            );
            work.await;
        }
        None if is_done => {}
        None => tracing::error!("the thread of {name} panicked"),
    }
}

/// Returns whether work runs on a thread of its own.
pub(crate) fn is_apart() -> bool {
    let flavor = Handle::current().runtime_flavor();
    flavor == RuntimeFlavor::MultiThread && !clock::is_simulated()
}

/// Runs a function on a new thread with the subscriber of the thread that has started it.
///
/// A subscriber may be that of a thread, as in tests. That of the process is every thread's: setting it once more would
/// cost all threads a look-up for each log line.
pub(crate) fn logging_to(subscriber: &Dispatch, run: impl FnOnce()) {
    let is_none = |here: &Dispatch| here.is::<NoSubscriber>();
    if dispatcher::get_default(is_none) && !is_none(subscriber) {
        dispatcher::with_default(subscriber, run);
    } else {
        run();
    }
}

/// Polls the work until it ends or is abandoned, on a runtime of this thread.
fn drive(work: &Mutex<Option<impl Future<Output = ()>>>, abandoned: CancellationToken) {
    let Ok(runtime) = Builder::new_current_thread().enable_all().build() else {
        // The work is left to the caller.
        return;
    };
    if let Some(work) = work.lock().take() {
        let _ = runtime.block_on(abandoned.run_until_cancelled_owned(work));
    }
    // Without waiting for blocking tasks, such as a name resolution.
    runtime.shutdown_background();
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn thread_name() -> Option<String> {
        let (named, name) = oneshot::channel();
        let work = async {
            // The task that it spawns is on the same thread.
            let name = async { thread::current().name().map(str::to_owned) };
            let mut tasks = tokio::task::JoinSet::new();
            tasks.spawn(name);
            let _ = named.send(tasks.join_next().await.unwrap().unwrap());
        };
        run_apart("apart", work).await;
        name.await.unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn work_apart_runs_while_every_worker_is_blocked() {
        let (give, take) = std::sync::mpsc::channel();
        let mut blocked = tokio::task::JoinSet::new();
        blocked.spawn(async move { take.recv().unwrap() });
        // Polled on the thread of the test, which is no worker.
        let work = run_apart("apart", async move {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            give.send(7).unwrap();
        });
        work.await;
        assert_eq!(blocked.join_next().await.unwrap().unwrap(), 7);
        assert_eq!(thread_name().await.as_deref(), Some("apart"));
    }

    #[tokio::test(start_paused = true)]
    async fn work_apart_stays_on_a_runtime_with_one_thread() {
        let name = thread::current().name().map(str::to_owned);
        assert_eq!(thread_name().await, name);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn work_apart_ends_when_its_future_is_dropped() {
        let (dropping, dropped) = oneshot::channel::<()>();
        let (starting, started) = oneshot::channel();
        let work = run_apart("apart", async move {
            let _dropping = dropping;
            let _ = starting.send(());
            std::future::pending().await
        });
        tokio::select! {
            () = work => unreachable!("it never ends"),
            running = started => running.unwrap(),
        }
        assert!(dropped.await.is_err());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn work_apart_that_panics_ends() {
        run_apart("apart", async { panic!("in the work") }).await;
    }
}
