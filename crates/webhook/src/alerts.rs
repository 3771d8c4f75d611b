//! What worries about webhooks that are served.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::metrics::WebhookMetrics;

/// A condition of served webhooks that someone should look at.
///
/// The webhooks answer calls meanwhile, so it does not count for [`check`](crate::WebhookHealth::check). Prints as
/// `renewal: the Secret …`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebhookAlert {
    /// The name: `renewal`, `configurations` or `pruning`.
    pub name: &'static str,
    /// The reason, which may quote the API server.
    pub message: String,
}

impl fmt::Display for WebhookAlert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.message)
    }
}

/// The subjects of alerts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// The certificate could not be read or replaced at the last check.
    Renewal,
    /// The configurations could not be applied at the last attempt.
    Configurations,
    /// A configuration of an earlier release could not be removed at the last attempt.
    Pruning,
}

impl Subject {
    pub(crate) const ALL: [Self; 3] = [Self::Renewal, Self::Configurations, Self::Pruning];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Renewal => "renewal",
            Self::Configurations => "configurations",
            Self::Pruning => "pruning",
        }
    }
}

/// The alerts that are raised now. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Alerts {
    raised: Arc<RwLock<BTreeMap<Subject, String>>>,
    metrics: WebhookMetrics,
}

impl Alerts {
    pub(crate) fn new(metrics: WebhookMetrics) -> Self {
        // A rule on a series that does not exist never fires.
        for subject in Subject::ALL {
            metrics.alert(subject.as_str(), false);
        }
        Self {
            raised: Arc::default(),
            metrics,
        }
    }

    /// Raises an alert, or clears it; logs the reason once as long as it stays the same.
    pub(crate) fn set(&self, subject: Subject, outcome: Result<(), String>) {
        self.metrics.alert(subject.as_str(), outcome.is_err());
        let mut raised = self.raised.write();
        let name = subject.as_str();
        match outcome {
            Ok(()) => {
                if raised.remove(&subject).is_some() {
                    tracing::info!("the {name} of the webhooks succeeded again");
                }
            }
            Err(message) => {
                if raised.get(&subject) != Some(&message) {
                    tracing::warn!("the {name} of the webhooks failed: {message}");
                }
                raised.insert(subject, message);
            }
        }
    }

    /// Returns the alerts that are raised.
    pub(crate) fn raised(&self) -> Vec<WebhookAlert> {
        let raised = self.raised.read();
        let alerts = raised.iter().map(|(subject, message)| WebhookAlert {
            name: subject.as_str(),
            message: message.clone(),
        });
        alerts.collect()
    }
}
