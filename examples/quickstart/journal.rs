//! Prints calls of handlers as they happen.

use std::fmt;
use std::sync::Arc;

use lariat::cache::View;
use lariat::prelude::*;
use lariat_examples::{Paint, paint, remember, say};
use tokio::time::Instant;

/// Prints the calls of handlers for one namespace.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    started: Instant,
    namespace: Arc<str>,
}

impl Journal {
    pub(crate) fn new(namespace: &str) -> Self {
        Self {
            started: Instant::now(),
            namespace: namespace.into(),
        }
    }

    /// Converts a function that takes the journal beside its context into a handler.
    ///
    /// The watch covers the whole cluster; objects of other namespaces are skipped.
    pub(crate) fn handler<K, F, Fut>(&self, function: F) -> impl Handler<K>
    where
        K: View,
        F: Fn(Self, Context<K>) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = HandlerResult> + Send,
    {
        let log = self.clone();
        move |cx: Context<K>| {
            let (log, function) = (log.clone(), function.clone());
            async move {
                if cx.key().namespace() != Some(&*log.namespace) {
                    return Ok(Outcome::done());
                }
                function(log, cx).await
            }
        }
    }

    /// Prints one call of a handler.
    pub(crate) fn call<K: View>(&self, cx: &Context<K>, colour: Paint, what: impl fmt::Display) {
        // The path of the source file is shortened to its name.
        let causes = cx.causes().to_string();
        let causes = causes.replace("examples/quickstart/", "");
        let line = format!("{} {} {what}: {causes}", cx.key().name(), cx.handler());
        say(format_args!(
            "{} {} {} {} {}  {}",
            self.time(),
            paint(Paint::Cyan, cx.gvk().kind(), 6),
            paint(Paint::Bold, cx.key().name(), 6),
            paint(Paint::Dim, cx.handler(), 8),
            paint(colour, what, 31),
            paint(Paint::Dim, causes, 0),
        ));
        remember(line);
    }

    /// Prints what the program itself does.
    pub(crate) fn note(&self, what: &str) {
        let what = paint(Paint::Magenta, format!("▸ {what}"), 0);
        say(format_args!("{} {what}", self.time()));
    }

    fn time(&self) -> String {
        let time = format!("{:6.3}s", self.started.elapsed().as_secs_f64());
        paint(Paint::Dim, time, 0)
    }
}
