//! Requests to list again although the watch works.

use tokio::sync::watch;

use crate::content_filter::FilterChanges;

/// The reasons to list again that a reflector has not acted on yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rereads {
    filter: FilterChanges,
    /// Counts the relists that were requested.
    asked: Option<watch::Receiver<u64>>,
}

impl Rereads {
    pub(crate) fn new(filter: FilterChanges, asked: watch::Receiver<u64>) -> Self {
        let asked = Some(asked);
        Self { filter, asked }
    }

    /// Records that a list begins, which serves all reasons up to now.
    pub(super) fn see(&mut self) {
        self.filter.see();
        if let Some(asked) = &mut self.asked {
            asked.mark_unchanged();
        }
    }

    /// Waits for a reason that no list has served yet.
    pub(super) async fn next(&mut self) {
        let Self { filter, asked } = self;
        tokio::select! {
            () = filter.next() => {}
            () = request(asked.as_mut()) => {}
        }
    }
}

async fn request(asked: Option<&mut watch::Receiver<u64>>) {
    if let Some(asked) = asked
        && asked.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn a_request_is_acted_on_once() {
        let asked = watch::Sender::new(0);
        asked.send_modify(|asked| *asked += 1);
        let mut rereads = Rereads::new(FilterChanges::default(), asked.subscribe());
        assert!(rereads.clone().next().now_or_never().is_none());
        for _ in 0..2 {
            asked.send_modify(|asked| *asked += 1);
        }
        assert!(rereads.clone().next().now_or_never().is_some());
        rereads.see();
        assert!(rereads.clone().next().now_or_never().is_none());
        drop(asked);
        assert!(rereads.next().now_or_never().is_none());
    }
}
