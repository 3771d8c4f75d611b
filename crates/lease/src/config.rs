//! The configuration of a lease: its name, its holder identity, and its times.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::LeaseError;

/// client-go's `JitterFactor`.
///
/// The renew deadline must leave room for one retry with its jitter.
pub(crate) const JITTER: f64 = 1.2;

/// The file with the namespace of a pod's ServiceAccount.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The configuration of a lease: its name, its holder identity, and its times.
///
/// The defaults are client-go's: a lease duration of 15 seconds, a renew deadline of 10 seconds, and a retry period of
/// 2 seconds. The default namespace is that of the pod's ServiceAccount, or the client's if there is none. The default
/// identity is the pod's name (`POD_NAME`, or else `HOSTNAME`) with a random suffix, so that a restarted container does
/// not count as the holder.
///
/// ```
/// use std::time::Duration;
/// use lariat::Lease;
///
/// let lease = Lease::new("shop-operator")
///     .namespace("shops")
///     .duration(Duration::from_secs(30))
///     .renew_deadline(Duration::from_secs(20))
///     .retry_period(Duration::from_secs(5));
/// assert!(lease.validate().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a lease does nothing until an elector has it"]
pub struct Lease {
    /// The name of the lease object.
    pub(crate) name: String,
    /// The namespace; `None` for the default.
    pub(crate) namespace: Option<String>,
    /// The holder identity; `None` for the default.
    pub(crate) identity: Option<String>,
    /// The lease duration.
    pub(crate) duration: Duration,
    /// The renew deadline.
    pub(crate) renew_deadline: Duration,
    /// The retry period.
    pub(crate) retry_period: Duration,
    /// Whether the lease is released when the program stops.
    pub(crate) releases: bool,
}

impl Lease {
    /// Creates the configuration of the lease with this name.
    ///
    /// Processes that elect one leader among themselves use the same name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            namespace: None,
            identity: None,
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            releases: true,
        }
    }

    /// Sets the namespace (default: that of the ServiceAccount, or the client's).
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self {
            namespace: Some(namespace.into()),
            ..self
        }
    }

    /// Sets the holder identity (default: the pod's name with a random suffix).
    ///
    /// It must be unique: two processes with the same identity both count as the holder.
    pub fn identity(self, identity: impl Into<String>) -> Self {
        Self {
            identity: Some(identity.into()),
            ..self
        }
    }

    /// Sets the lease duration (default: 15 seconds).
    ///
    /// Other processes take the lease over when they have not seen a renewal for this long. The server stores whole
    /// seconds; fractions are rounded up.
    pub fn duration(self, duration: Duration) -> Self {
        Self { duration, ..self }
    }

    /// Sets the renew deadline (default: 10 seconds).
    ///
    /// A holder stops leading this long after it sent its last answered renewal. The clock of another process may run
    /// faster than the holder's by a factor of up to the lease duration divided by the renew deadline.
    pub fn renew_deadline(self, deadline: Duration) -> Self {
        Self {
            renew_deadline: deadline,
            ..self
        }
    }

    /// Sets how often a holder renews the lease (default: every 2 seconds).
    pub fn retry_period(self, period: Duration) -> Self {
        Self {
            retry_period: period,
            ..self
        }
    }

    /// Keeps the lease when the program stops (default: it is released).
    ///
    /// Other processes then wait until the lease has expired.
    ///
    /// ```
    /// use lariat::Lease;
    ///
    /// let lease = Lease::new("shop-operator").keep_on_stop();
    /// # let _ = lease;
    /// ```
    pub fn keep_on_stop(self) -> Self {
        Self {
            releases: false,
            ..self
        }
    }

    /// Validates the names and times.
    ///
    /// # Errors
    ///
    /// [`LeaseError::Invalid`] if:
    ///
    /// - the name, the namespace or the identity is empty,
    /// - the name is not a DNS subdomain, or the namespace not a DNS label, as the API server requires (RFC 1123),
    /// - the lease duration is zero or longer than the server can store (2^31 seconds),
    /// - the retry period is zero,
    /// - the lease duration is not longer than the renew deadline, or
    /// - the renew deadline is not longer than 1.2 retry periods, as client-go requires.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat::Lease;
    ///
    /// let error = Lease::new("shop-operator").duration(Duration::from_secs(10)).validate();
    /// assert!(error.unwrap_err().to_string().contains("not longer than the renew deadline"));
    /// ```
    pub fn validate(&self) -> Result<(), LeaseError> {
        let invalid = |reason: String| {
            Err(LeaseError::Invalid {
                lease: self.name.clone(),
                reason,
            })
        };
        let texts = [
            ("name", Some(&self.name)),
            ("namespace", self.namespace.as_ref()),
            ("identity", self.identity.as_ref()),
        ];
        for (what, text) in texts {
            if text.is_some_and(|text| text.trim().is_empty()) {
                return invalid(format!("the {what} is empty"));
            }
        }
        if let Some(reason) = self.misnamed() {
            return invalid(reason);
        }
        let Self {
            duration,
            renew_deadline,
            retry_period,
            ..
        } = *self;
        if duration.is_zero() || i32::try_from(duration.as_secs()).is_err() {
            return invalid(format!(
                "the lease duration {duration:?} is not between a second and 2^31 seconds"
            ));
        }
        if retry_period.is_zero() {
            return invalid("the retry period is zero".to_owned());
        }
        if duration <= renew_deadline {
            return invalid(format!(
                "the lease duration {duration:?} is not longer than the renew deadline {renew_deadline:?}; \
                 set `renew_deadline` too"
            ));
        }
        if renew_deadline <= retry_period.mul_f64(JITTER) {
            return invalid(format!(
                "the renew deadline {renew_deadline:?} is not longer than 1.2 times the retry period {retry_period:?}"
            ));
        }
        Ok(())
    }

    /// Describes a name or namespace that the API server would refuse.
    fn misnamed(&self) -> Option<String> {
        if self.name.len() > 253 || !self.name.split('.').all(is_label) {
            return Some(format!(
                "the name {:?} must be at most 253 lower-case letters, digits, '-' and '.', and each part between dots \
                 must begin and end with a letter or digit",
                self.name
            ));
        }
        let namespace = self.namespace.as_deref()?;
        (namespace.len() > 63 || !is_label(namespace)).then(|| {
            format!(
                "the namespace {namespace:?} must be at most 63 lower-case letters, digits and '-', and begin and end \
                 with a letter or digit"
            )
        })
    }

    /// Explains why a lease was not renewed by its deadline.
    ///
    /// The renewal was due at `due` and began at `began`. If it began late, or ended long after the deadline, the
    /// process stood still, and the server had no part in it.
    pub(crate) fn not_renewed(&self, due: Instant, began: Instant, deadline: Instant) -> String {
        let late = began.saturating_duration_since(due);
        if late >= self.retry_period {
            let silent = late + self.retry_period;
            return format!(
                "no renewal was attempted for {silent:.1?}: the process or its runtime stood still"
            );
        }
        let beyond = deadline.elapsed();
        if beyond >= self.retry_period {
            return format!(
                "the process or its runtime stood still for at least {beyond:.1?} during a renewal"
            );
        }
        format!("it was not renewed within {:?}", self.renew_deadline)
    }

    /// Returns the lease duration in whole seconds, rounded up.
    pub(crate) fn seconds(&self) -> i32 {
        let rounded = self.duration.as_secs() + u64::from(self.duration.subsec_nanos() > 0);
        i32::try_from(rounded).unwrap_or(i32::MAX)
    }
}

/// Returns whether a text is a DNS label, of any length.
///
/// Only the whole name is bounded by the API server, not its labels.
fn is_label(text: &str) -> bool {
    let is_end = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.iter().all(|byte| is_end(byte) || *byte == b'-')
        && bytes.first().is_some_and(is_end)
        && bytes.last().is_some_and(is_end)
}

/// Returns the namespace of the pod's ServiceAccount; `None` outside of a pod.
pub(crate) fn own_namespace() -> Option<String> {
    let text = std::fs::read_to_string(NAMESPACE_FILE).ok()?;
    let namespace = text.trim();
    (!namespace.is_empty()).then(|| namespace.to_owned())
}

/// Returns the name of the pod or host with a random suffix.
pub(crate) fn own_identity() -> String {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let host = variable("POD_NAME")
        .or_else(|| variable("HOSTNAME"))
        .unwrap_or_else(|| "lariat".to_owned());
    format!("{host}_{:08x}", fastrand::u32(..))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn refused(lease: &Lease) -> String {
        lease.validate().expect_err("it is invalid").to_string()
    }

    #[test]
    fn the_defaults_are_those_of_client_go() {
        let lease = Lease::new("shop");
        assert!(lease.validate().is_ok());
        let times = (lease.duration, lease.renew_deadline, lease.retry_period);
        assert_eq!(times, (15 * SECOND, 10 * SECOND, 2 * SECOND));
    }

    #[test]
    fn what_cannot_work_is_refused_with_a_reason() {
        let lease = || Lease::new("shop");
        let table = [
            (Lease::new(" "), "name is empty"),
            (lease().namespace(""), "namespace is empty"),
            (lease().identity(""), "identity is empty"),
            (lease().duration(Duration::ZERO), "between a second"),
            (lease().duration(Duration::MAX), "between a second"),
            (
                lease().duration(10 * SECOND),
                "not longer than the renew deadline 10s; set `renew_deadline` too",
            ),
            (
                Lease::new("Shop_Operator"),
                "the name \"Shop_Operator\" must be at most 253 lower-case letters",
            ),
            (Lease::new("shop..io"), "each part between dots"),
            (Lease::new("a".repeat(254)), "at most 253"),
            (lease().namespace("shops.eu"), "the namespace \"shops.eu\""),
            (lease().namespace("n".repeat(64)), "at most 63"),
            (lease().retry_period(Duration::ZERO), "retry period is zero"),
            (
                lease().renew_deadline(Duration::from_millis(2400)),
                "1.2 times the retry period 2s",
            ),
        ];
        for (lease, reason) in table {
            let said = refused(&lease);
            assert!(said.contains(reason), "{said:?} does not say {reason:?}");
        }
        assert!(
            Lease::new("shop.example.com")
                .namespace("n1")
                .validate()
                .is_ok()
        );
        assert!(Lease::new("a".repeat(253)).validate().is_ok());
        assert!(
            lease()
                .renew_deadline(Duration::from_millis(2401))
                .validate()
                .is_ok()
        );
    }

    #[test]
    fn parts_of_seconds_are_rounded_up() {
        assert_eq!(
            Lease::new("shop")
                .duration(Duration::from_millis(14_001))
                .seconds(),
            15
        );
        assert_eq!(Lease::new("shop").seconds(), 15);
    }

    #[test]
    fn two_starts_have_two_identities() {
        assert_ne!(own_identity(), own_identity());
    }
}
