//! The keys that the share of this process gains.

use lariat_queue::Add;

use super::core::ControllerCore;
use super::feed::Feed;
use super::opened::Opened;
use super::pieces::add_in_pieces;
use super::shards::Gain;

impl ControllerCore {
    /// Waits until the share gains keys, and enqueues them.
    ///
    /// Without a ring it never resolves.
    pub(super) async fn enqueue_gains(&self, opened: &Opened) {
        let gain = opened.follower().gained().await;
        self.enqueue_gained(opened, &gain);
    }

    /// Enqueues the objects that the share has gained, for all handlers.
    ///
    /// Predicates are not asked: the former member may have had to call a handler for an earlier change, a related
    /// object or a retry.
    fn enqueue_gained(&self, opened: &Opened, gain: &Gain) {
        let lanes = self.lanes().list();
        if lanes.is_empty() {
            return;
        }
        let snapshot = opened.informer().store().snapshot();
        let gained = snapshot.iter().filter(|object| gain.holds(object));
        add_in_pieces(
            self.queue(),
            gained.map(|object| {
                let change = Feed::initial(object);
                let (_, priority) = lanes.due(&change);
                let add = Add::now().priority(priority);
                (object.key().clone(), add.payload(change.cause().into()))
            }),
        );
    }
}
