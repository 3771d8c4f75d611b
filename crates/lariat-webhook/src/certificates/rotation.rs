//! When certificates are made and replaced: a state machine of the recorded state and the time.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::error::CertificateError;
use super::generate::Generated;

/// The rules of rotation.
#[derive(Debug, Clone)]
pub(super) struct Rotation {
    pub(super) names: Vec<String>,
    pub(super) validity: Duration,
    /// How long clients trust the next authority before the server uses it.
    pub(super) overlap: Duration,
}

/// The certificates of all replicas.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// What servers show.
    pub(super) current: Generated,
    /// What they will show, and clients trust already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<Generated>,
    /// The authority before, for replicas that still show its certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) previous: Option<String>,
}

impl Rotation {
    /// Returns the next record; none if the present one stays.
    pub(super) fn step(
        &self,
        record: Option<&Record>,
        now: Timestamp,
    ) -> Result<Option<Record>, CertificateError> {
        let Some(record) = record else {
            return self.begin(None, now).map(Some);
        };
        if let Some(next) = &record.next {
            let is_trusted = now >= later(next.made, self.overlap);
            // What has expired cannot be shown longer, trusted or not.
            let promotes = is_trusted || now >= record.current.expires;
            return Ok(promotes.then(|| Record {
                current: next.clone(),
                next: None,
                previous: Some(record.current.authority.clone()),
            }));
        }
        if now >= record.current.expires {
            let previous = Some(record.current.authority.clone());
            return self.begin(previous, now).map(Some);
        }
        if now < self.renewal(&record.current) && self.is_for_all_names(&record.current) {
            return Ok(None);
        }
        // Two replicas with names of their own must not take turns.
        let names: BTreeSet<&String> = record.current.names.iter().chain(&self.names).collect();
        let names: Vec<String> = names.into_iter().cloned().collect();
        let next = Generated::new(&names, now, self.validity)?;
        Ok(Some(Record {
            next: Some(next),
            ..record.clone()
        }))
    }

    /// Returns the record of a new certificate that is shown immediately.
    fn begin(&self, previous: Option<String>, now: Timestamp) -> Result<Record, CertificateError> {
        Ok(Record {
            current: Generated::new(&self.names, now, self.validity)?,
            next: None,
            previous,
        })
    }

    /// Returns when the certificate is renewed: when a third of its time is left.
    fn renewal(&self, current: &Generated) -> Timestamp {
        let valid = current.expires.duration_since(current.made);
        let left = valid.unsigned_abs() / 3;
        current.expires.checked_sub(left).unwrap_or(Timestamp::MIN)
    }

    fn is_for_all_names(&self, current: &Generated) -> bool {
        let names: BTreeSet<&String> = current.names.iter().collect();
        self.names.iter().all(|name| names.contains(name))
    }
}

impl Record {
    /// Returns the authorities that clients have to trust, in PEM.
    pub(super) fn bundle(&self) -> String {
        let next = self.next.iter().map(|next| next.authority.as_str());
        let all = [self.current.authority.as_str()].into_iter().chain(next);
        let mut bundle = String::new();
        for authority in all.chain(self.previous.as_deref()) {
            bundle.push_str(authority.trim_end());
            bundle.push('\n');
        }
        bundle
    }
}

fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.saturating_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);
    const HOUR: Duration = Duration::from_secs(3600);

    fn rotation() -> Rotation {
        Rotation {
            names: vec!["widgets.demo.svc".to_owned()],
            validity: 90 * DAY,
            overlap: HOUR,
        }
    }

    fn step(rotation: &Rotation, record: Option<&Record>, now: Timestamp) -> Option<Record> {
        rotation
            .step(record, now)
            .map_err(|error| error.to_string())
            .unwrap()
    }

    #[test]
    fn a_certificate_is_renewed_when_a_third_of_its_time_is_left() {
        let (rotation, start) = (rotation(), Timestamp::UNIX_EPOCH + 1000 * DAY);
        let first = step(&rotation, None, start).unwrap();
        assert!(step(&rotation, Some(&first), start + 59 * DAY).is_none());
        let second = step(&rotation, Some(&first), start + 60 * DAY).unwrap();
        // The next one is trusted, and not yet shown.
        assert!(second.current == first.current);
        let next = second.next.clone().unwrap();
        assert!(second.bundle().contains(next.authority.trim_end()));
        assert!(second.bundle().contains(first.current.authority.trim_end()));
        assert!(step(&rotation, Some(&second), start + 60 * DAY + HOUR / 2).is_none());
        // After the overlap it is shown, and what other replicas show is still trusted.
        let third = step(&rotation, Some(&second), start + 60 * DAY + HOUR).unwrap();
        assert!(third.current == next && third.next.is_none());
        assert!(third.bundle().contains(first.current.authority.trim_end()));
        assert!(step(&rotation, Some(&third), start + 60 * DAY + HOUR).is_none());
    }

    #[test]
    fn no_certificate_is_shown_after_it_has_expired() {
        let (rotation, start) = (rotation(), Timestamp::UNIX_EPOCH + 1000 * DAY);
        let first = step(&rotation, None, start).unwrap();
        let after = start + 91 * DAY;
        let replaced = step(&rotation, Some(&first), after).unwrap();
        assert!(replaced.current.expires > after);
        // Also if the next one is there and the overlap is longer than what is left.
        let slow = Rotation {
            overlap: 60 * DAY,
            ..rotation
        };
        let prepared = step(&slow, Some(&first), start + 60 * DAY).unwrap();
        let promoted = step(&slow, Some(&prepared), start + 90 * DAY).unwrap();
        assert!(prepared.next == Some(promoted.current));
    }

    #[test]
    fn another_name_asks_for_another_certificate() {
        let (rotation, start) = (rotation(), Timestamp::UNIX_EPOCH + 1000 * DAY);
        let first = step(&rotation, None, start).unwrap();
        let more = Rotation {
            names: vec!["other".to_owned(), "widgets.demo.svc".to_owned()],
            ..rotation.clone()
        };
        let prepared = step(&more, Some(&first), start).unwrap();
        assert_eq!(prepared.next.unwrap().names, more.names);
        // A replica that needs fewer names is content with more.
        let wide = step(&more, None, start).unwrap();
        assert!(step(&rotation, Some(&wide), start).is_none());
    }
}
