//! The lines an operator has printed, for a story to wait for.

use std::collections::VecDeque;
use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::{Result, bail};
use tokio::sync::watch;
use tokio::time::timeout;

/// How many lines are remembered: an example may run for days.
const KEPT: usize = 1000;
/// How long a story waits for a line, or for pods: images may have to be pulled first.
pub const TIMEOUT: Duration = Duration::from_secs(120);

static LINES: LazyLock<watch::Sender<VecDeque<String>>> = LazyLock::new(watch::Sender::default);

/// Remembers a line that a handler has printed.
pub(super) fn remember(line: impl fmt::Display) {
    LINES.send_modify(|lines| {
        if lines.len() == KEPT {
            lines.pop_front();
        }
        lines.push_back(line.to_string());
    });
}

/// Forgets all lines, at the start of a new step.
pub(super) fn forget() {
    LINES.send_modify(VecDeque::clear);
}

/// Waits until this many lines of this step contain all the words, and returns the last one.
///
/// # Errors
///
/// There are fewer after two minutes.
pub async fn until_printed(times: usize, words: &[&str]) -> Result<String> {
    let is_meant = |line: &&String| words.iter().all(|word| line.contains(word));
    let mut lines = LINES.subscribe();
    let enough = lines.wait_for(|lines| lines.iter().filter(is_meant).count() >= times);
    if let Ok(Ok(lines)) = timeout(TIMEOUT, enough).await {
        return Ok(lines.iter().rfind(is_meant).cloned().unwrap_or_default());
    }
    let lines: Vec<String> = LINES.borrow().iter().cloned().collect();
    let (words, lines) = (words.join(" … "), lines.join("\n  "));
    bail!(
        "the operator has not printed {words:?} {times} times in {TIMEOUT:?}; it printed\n  {lines}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// One test, since the lines are global; handlers of other tests print lines too.
    #[tokio::test(start_paused = true)]
    async fn a_story_waits_for_lines_of_its_step() {
        let mut wait = Box::pin(until_printed(2, &["line-a", "line-b"]));
        timeout(SECOND, &mut wait).await.expect_err("it waits");
        remember("line-a and line-b");
        remember("line-a only");
        timeout(SECOND, &mut wait).await.expect_err("it waits");
        remember("line-b and line-a");
        wait.await.expect("there are two");

        until_printed(1, &["line-a only"])
            .await
            .expect("it is remembered");
        let last = until_printed(1, &["line-a"]).await;
        assert_eq!(last.expect("it is remembered"), "line-b and line-a");
        let error = until_printed(1, &["line-c"])
            .await
            .expect_err("nothing printed that");
        let text = error.to_string();
        assert!(
            text.starts_with("the operator has not printed \"line-c\" 1 times in 120s"),
            "{text}"
        );
        assert!(text.contains("line-a and line-b\n"), "{text}");
    }
}
