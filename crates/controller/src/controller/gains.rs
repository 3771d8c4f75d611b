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

    /// Enqueues the objects that the share has gained, for the handlers that want such objects.
    ///
    /// The former member may have had to call a handler for an update, a related object or a retry. Which of them is not
    /// known here, and a predicate may be the scope of a handler.
    fn enqueue_gained(&self, opened: &Opened, gain: &Gain) {
        let lanes = self.lanes().list();
        let snapshot = opened.informer().store().snapshot();
        let gained = snapshot.iter().filter(|object| gain.holds(object));
        add_in_pieces(
            self.queue(),
            gained.filter_map(|object| {
                let change = Feed::initial(object);
                let due = lanes.may_be_due(object);
                let priority = lanes.priority(&due, &change);
                let add = Add::now().lanes(due.clone()).priority(priority);
                let add = add.payload(change.cause().into());
                (!due.is_empty()).then(|| (object.key().clone(), add))
            }),
        );
    }
}
