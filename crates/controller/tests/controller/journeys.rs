//! The files that a key passes through on its way from a worker to a handler.

use std::backtrace::Backtrace;
use std::collections::BTreeSet;
use std::sync::Arc;

use lariat_controller::Outcome;
use parking_lot::Mutex;

use crate::bench::{Bench, settle};

/// Returns the module of the crate that a line of a backtrace names, if it names one.
fn module(line: &str) -> Option<String> {
    let (_, path) = line.split_once("lariat_controller::")?;
    let names = path.split("::");
    let is_module = |name: &&str| name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let names: Vec<&str> = names.take_while(is_module).collect();
    let next = path.split("::").nth(names.len());
    let is_type = next.is_some_and(|next| next.starts_with(char::is_uppercase));
    // Without a type, the last name is that of a function.
    let of_function = names.len().checked_sub(1)?;
    let count = if is_type { names.len() } else { of_function };
    Some(names[..count].join("::"))
}

#[tokio::test(start_paused = true)]
async fn worker_calls_a_handler_through_ten_files_at_most() {
    let bench = Bench::new().await;
    let stack = Arc::<Mutex<String>>::default();
    let noted = Arc::clone(&stack);
    bench.on("log", move |_| {
        *noted.lock() = Backtrace::force_capture().to_string();
        std::future::ready(Ok(Outcome::done()))
    });
    bench.start().await;
    bench.create("a").await;
    settle().await;
    let stack = stack.lock().clone();
    let modules: BTreeSet<String> = stack.lines().filter_map(module).collect();
    assert!(modules.contains("controller::run"), "{stack}");
    assert!(modules.len() <= 10, "{modules:#?}");
}
