//! Requests to list again although the watch works.

use tokio::sync::watch;

use crate::content_filter::FilterChanges;

/// The reasons to list again that a reflector has not acted on yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rereads {
    filter: FilterChanges,
    /// Counts the relists that were requested.
    requested: Option<watch::Receiver<u64>>,
}

impl Rereads {
    pub(crate) fn new(filter: FilterChanges, requested: watch::Receiver<u64>) -> Self {
        let requested = Some(requested);
        Self { filter, requested }
    }

    /// Records that a list begins, which serves all reasons up to now.
    pub(super) fn see(&mut self) {
        self.filter.see();
        if let Some(requested) = &mut self.requested {
            requested.mark_unchanged();
        }
    }

    /// Waits for a reason that no list has served yet.
    pub(super) async fn next(&mut self) {
        let Self { filter, requested } = self;
        tokio::select! {
            () = filter.next() => {}
            () = request(requested.as_mut()) => {}
        }
    }
}

async fn request(requested: Option<&mut watch::Receiver<u64>>) {
    if let Some(requested) = requested
        && requested.changed().await.is_ok()
    {
        return;
    }
    // The sender is dropped with the informer; then no further request can come.
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn a_request_is_acted_on_once() {
        let requested = watch::Sender::new(0);
        requested.send_modify(|requested| *requested += 1);
        let mut rereads = Rereads::new(FilterChanges::default(), requested.subscribe());
        assert!(rereads.clone().next().now_or_never().is_none());
        for _ in 0..2 {
            requested.send_modify(|requested| *requested += 1);
        }
        assert!(rereads.clone().next().now_or_never().is_some());
        rereads.see();
        assert!(rereads.clone().next().now_or_never().is_none());
        drop(requested);
        assert!(rereads.next().now_or_never().is_none());
    }
}
