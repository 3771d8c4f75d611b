//! The behaviour of the trial's handlers when they are called.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lariat_cache::View;
use lariat_controller::{Context, HandlerError, HandlerResult, Outcome};
use lariat_core::{Gvk, ObjectKey};
use lariat_sim::Process;
use lariat_sim::internals::{ActivityKind, PLANNED, ProcessExt};
use tokio::time;

use super::dice::Dice;
use super::own::Target;
use crate::plan::OwnWrite;

/// The behaviour of all handlers of an incarnation.
pub(super) struct Behaviour {
    process: Process,
    dice: Dice,
    /// Out of a thousand calls, how many misbehave.
    bad: AtomicU32,
    /// Out of a thousand calls, how many write.
    writing: u32,
    /// The longest call, in milliseconds.
    slow: u32,
}

impl Behaviour {
    pub(super) fn new(process: &Process, mut random: fastrand::Rng) -> Self {
        let bad = [0, 50, 200][random.usize(..3)];
        let writing = [0, 100, 400, 700][random.usize(..4)];
        let slow = [0, 0, 100, 1000][random.usize(..4)];
        Self {
            process: process.clone(),
            dice: Dice::new(random),
            bad: AtomicU32::new(bad),
            writing,
            slow,
        }
    }

    /// Misbehaves more often from now on, or less.
    pub(super) fn misbehave(&self, number: u32) {
        self.bad.store(number % 400, Ordering::Relaxed);
    }

    pub(super) async fn handle<K: View>(&self, cx: &Context<K>, kind: usize) -> HandlerResult {
        // At rest a handler must neither fail nor write, or the checks at rest would report what it does.
        if self.process.faults_ended() {
            return Ok(Outcome::done());
        }
        if self.slow > 0 {
            time::sleep(self.delay(self.slow)).await;
        }
        if self.dice.below(1000) < self.bad.load(Ordering::Relaxed) {
            return self.misbehave_now(cx).await;
        }
        if self.dice.below(1000) < self.writing {
            self.write(cx, kind).await?;
        }
        match self.dice.below(60) {
            0 => Ok(Outcome::requeue_after(self.delay(20_000))),
            1 => {
                let after = self.delay(20_000);
                // Reported before it is done, so that the checker knows of it when the call comes.
                self.enqueued(cx.gvk(), cx.key(), after);
                cx.enqueue_after(cx.key(), after);
                Ok(Outcome::done())
            }
            2 => {
                let key = self.other_key();
                self.enqueued(cx.gvk(), &key, Duration::ZERO);
                cx.enqueue(&key);
                Ok(Outcome::done())
            }
            _ => Ok(Outcome::done()),
        }
    }

    fn enqueued(&self, kind: &Gvk, key: &ObjectKey, after: Duration) {
        let (kind, key) = (kind.clone(), key.clone());
        self.process
            .acts(ActivityKind::Enqueued { kind, key, after });
    }

    fn delay(&self, most: u32) -> Duration {
        Duration::from_millis(self.dice.below(most).into())
    }

    fn other_key(&self) -> ObjectKey {
        ObjectKey::namespaced("default", &format!("o{}", self.dice.below(12)))
    }

    async fn misbehave_now<K: View>(&self, cx: &Context<K>) -> HandlerResult {
        match self.dice.below(8) {
            0 | 1 => Err("not now".into()),
            2 => Err(HandlerError::from("later").retry_after(self.delay(10_000))),
            3 => Err(HandlerError::terminal("never")),
            4 => std::panic::panic_any(PLANNED),
            // The handler's timeout ends it, or the grace period of a stop.
            5 => std::future::pending().await,
            _ => {
                time::sleep(self.delay(5_000)).await;
                self.read(cx.key(), cx);
                Ok(Outcome::done())
            }
        }
    }

    fn read<K: View>(&self, key: &ObjectKey, cx: &Context<K>) {
        let object = cx.cache().store().get(key);
        self.process.has_read(cx.gvk(), key, object.as_ref());
    }

    /// Writes to this object or another of the kind, and then reads the cache.
    async fn write<K: View>(&self, cx: &Context<K>, kind: usize) -> Result<(), HandlerError> {
        let key = if self.dice.below(4) == 0 {
            self.other_key()
        } else {
            cx.key().clone()
        };
        let target = Target {
            process: &self.process,
            client: cx.client(),
            dice: &self.dice,
            kind,
            key,
        };
        let own = match self.dice.below(16) {
            0..4 => OwnWrite::Annotate,
            4..6 => OwnWrite::Relabel(self.label()),
            6..8 => OwnWrite::Apply,
            8..10 => OwnWrite::Update,
            10..12 => OwnWrite::Create(self.dice.below(2) == 0),
            12 => OwnWrite::Status,
            13 => OwnWrite::DeleteLabelled,
            _ => OwnWrite::Delete,
        };
        target.write(own).await?;
        self.read(&target.key, cx);
        if self.dice.below(3) == 0 {
            // What left a selection comes back before the watch has shown either.
            if matches!(own, OwnWrite::Relabel(_)) {
                target.write(OwnWrite::Relabel(self.label())).await?;
                self.read(&target.key, cx);
            }
            time::sleep(self.delay(8_000)).await;
            self.read(&target.key, cx);
            self.read(cx.key(), cx);
        }
        Ok(())
    }

    fn label(&self) -> u8 {
        u8::try_from(self.dice.below(3)).unwrap_or_default()
    }
}
