//! The rotation of certificates: a state machine of the stored record and the time.
//!
//! The order of steps makes sure that clients trust a certificate before a server uses it:
//!
//! 1. A third of the validity is left, or a name is missing: the next certificate is generated, and its authority joins
//!    the bundle. Clients that call a name that the current certificate lacks get the next one.
//! 2. A replica has injected the bundle: the time is recorded.
//! 3. The overlap has passed: the next certificate becomes the current one, and the old authority stays in the
//!    bundle, for replicas that have not read the Secret yet.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::error::CertificateError;
use super::generate::Generated;

/// The rules of the rotation.
#[derive(Debug, Clone)]
pub(super) struct Rotation {
    pub(super) names: Vec<String>,
    pub(super) validity: Duration,
    /// How long clients trust the next authority before servers use it.
    pub(super) overlap: Duration,
    /// Whether the program injects the authorities itself.
    ///
    /// Only then is it known when clients trust them.
    pub(super) injects: bool,
}

/// The stored state, which all replicas share.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The certificate that servers use.
    pub(super) current: Generated,
    /// Certificates for names that those before them lack; the last one is for all names, and will be the current one.
    ///
    /// Their authorities are in the bundle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) next: Vec<Generated>,
    /// The time at which a replica had injected a bundle with the last authority of `next`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) injected: Option<Timestamp>,
    /// The previous authority, for replicas that still use its certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) previous: Option<String>,
}

impl Rotation {
    /// Returns the next record, or `None` if the present one stays.
    ///
    /// `bundle` is the bundle that this replica has injected last.
    pub(super) fn step(
        &self,
        record: Option<&Record>,
        now: Timestamp,
        bundle: Option<&str>,
    ) -> Result<Option<Record>, CertificateError> {
        let Some(record) = record else {
            return self.begin(None, now).map(Some);
        };
        // After a long downtime a next certificate may have expired too.
        let is_valid = |generated: &&Generated| now < generated.expires;
        let next: Vec<Generated> = record.next.iter().filter(is_valid).cloned().collect();
        match next.last() {
            Some(last) if self.is_for_all_names(last) => {
                Ok(self.promote(record, last, now, bundle))
            }
            // Without a valid certificate there is nothing to keep trusted, so the new one is used immediately. The old
            // authority stays in the bundle for replicas that have not read the Secret yet.
            None if now >= record.current.expires => {
                let previous = Some(record.current.authority.clone());
                self.begin(previous, now).map(Some)
            }
            // One that has expired before it was used is replaced early.
            None if record.next.is_empty() && self.is_enough(&record.current, now) => Ok(None),
            _ => self.append(record, next, now).map(Some),
        }
    }

    /// Returns the record for a Secret that was deleted or damaged, from the one that this replica uses.
    ///
    /// A deletion asks for another certificate, but its authority must be trusted first.
    pub(super) fn restore(
        &self,
        last: &Record,
        now: Timestamp,
    ) -> Result<Record, CertificateError> {
        if now >= last.current.expires {
            return self.begin(Some(last.current.authority.clone()), now);
        }
        match last.next.last() {
            Some(next) if self.is_for_all_names(next) => Ok(last.clone()),
            _ => self.append(last, last.next.clone(), now),
        }
    }

    /// Returns the record with another certificate, which will be the current one.
    fn append(
        &self,
        record: &Record,
        mut next: Vec<Generated>,
        now: Timestamp,
    ) -> Result<Record, CertificateError> {
        let newest = next.last().unwrap_or(&record.current);
        // The union of the names: two replicas with different names would otherwise replace each other's certificate
        // endlessly.
        let names: BTreeSet<&String> = newest.names.iter().chain(&self.names).collect();
        let names: Vec<String> = names.into_iter().cloned().collect();
        next.push(Generated::new(&names, now, self.validity)?);
        Ok(Record {
            next,
            injected: None,
            ..record.clone()
        })
    }

    /// Returns the record after a step towards using the next certificate, if any.
    ///
    /// Either clients trust the next certificate, and it becomes the current one. Or this replica has injected its
    /// authority, and the time of that is recorded.
    fn promote(
        &self,
        record: &Record,
        next: &Generated,
        now: Timestamp,
        bundle: Option<&str>,
    ) -> Option<Record> {
        let trusted = if self.injects {
            record.injected
        } else {
            Some(next.made)
        };
        let is_trusted = trusted.is_some_and(|since| now >= later(since, self.overlap));
        // A certificate that is about to expire cannot be used any longer, whether the next one is trusted or not.
        if is_trusted || now >= self.last_moment(&record.current) {
            let others = record.next.iter().filter(|other| *other != next);
            let former = [&record.current].into_iter().chain(others);
            return Some(Record {
                current: next.clone(),
                next: Vec::new(),
                injected: None,
                previous: Some(bundle_of(former.map(|it| it.authority.as_str()))),
            });
        }
        // Compared by content: the bundle that was injected may be older than the record.
        let has_next = |bundle: &str| bundle.contains(next.authority.trim_end());
        let is_news = record.injected.is_none() && bundle.is_some_and(has_next);
        is_news.then(|| Record {
            injected: Some(now),
            ..record.clone()
        })
    }

    /// Returns the record of a new certificate that is used immediately.
    fn begin(&self, previous: Option<String>, now: Timestamp) -> Result<Record, CertificateError> {
        Ok(Record {
            current: Generated::new(&self.names, now, self.validity)?,
            next: Vec::new(),
            injected: None,
            previous,
        })
    }

    /// Returns the time of the renewal: when a third of the validity is left.
    fn renewal(&self, current: &Generated) -> Timestamp {
        before_the_end(current, 3)
    }

    /// Returns the time of the last moment: when a hundredth of the validity is left.
    fn last_moment(&self, current: &Generated) -> Timestamp {
        before_the_end(current, 100)
    }

    /// Returns whether no certificate is needed beside this one.
    fn is_enough(&self, current: &Generated, now: Timestamp) -> bool {
        now < self.renewal(current) && self.is_for_all_names(current)
    }

    fn is_for_all_names(&self, current: &Generated) -> bool {
        let names: BTreeSet<&String> = current.names.iter().collect();
        self.names.iter().all(|name| names.contains(name))
    }
}

impl Record {
    /// Returns the authorities that clients must trust, in PEM.
    pub(super) fn bundle(&self) -> String {
        let next = self.next.iter().map(|next| next.authority.as_str());
        let all = [self.current.authority.as_str()].into_iter().chain(next);
        bundle_of(all.chain(self.previous.as_deref()))
    }
}

fn bundle_of<'a>(authorities: impl Iterator<Item = &'a str>) -> String {
    let mut bundle = String::new();
    for authority in authorities {
        bundle.push_str(authority.trim_end());
        bundle.push('\n');
    }
    bundle
}

/// Returns the time at which a fraction of a certificate's validity is left.
fn before_the_end(current: &Generated, part: u32) -> Timestamp {
    let valid = current.expires.duration_since(current.made);
    let left = valid.unsigned_abs() / part;
    current.expires.checked_sub(left).unwrap_or(Timestamp::MIN)
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
            injects: false,
        }
    }

    fn step(rotation: &Rotation, record: Option<&Record>, now: Timestamp) -> Option<Record> {
        rotation
            .step(record, now, None)
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
        let next = second.next[0].clone();
        assert!(second.bundle().contains(next.authority.trim_end()));
        assert!(second.bundle().contains(first.current.authority.trim_end()));
        assert!(step(&rotation, Some(&second), start + 60 * DAY + HOUR / 2).is_none());
        // After the overlap it is shown, and what other replicas show is still trusted.
        let third = step(&rotation, Some(&second), start + 60 * DAY + HOUR).unwrap();
        assert!(third.current == next && third.next.is_empty());
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
        assert!(prepared.next == [promoted.current]);
    }

    #[test]
    fn after_a_long_stop_no_expired_certificate_is_shown_although_it_was_the_next() {
        let (rotation, start) = (rotation(), Timestamp::UNIX_EPOCH + 1000 * DAY);
        let first = step(&rotation, None, start).unwrap();
        let prepared = step(&rotation, Some(&first), start + 60 * DAY).unwrap();
        // Both have expired.
        let after = start + 151 * DAY;
        let renewed = step(&rotation, Some(&prepared), after).unwrap();
        assert!(renewed.current.expires > after && renewed.next.is_empty());
        assert!(prepared.next != [renewed.current]);
        // The next one alone has expired, since it was made for a shorter time.
        let short = Rotation {
            validity: DAY,
            overlap: 60 * DAY,
            ..rotation.clone()
        };
        let prepared = step(&short, Some(&first), start + 60 * DAY).unwrap();
        let again = step(&rotation, Some(&prepared), start + 62 * DAY).unwrap();
        assert!(again.current == first.current && again.next != prepared.next);
        assert!(again.next[0].expires > start + 62 * DAY);
    }

    #[test]
    fn the_next_certificate_is_shown_only_after_its_authority_was_injected() {
        let start = Timestamp::UNIX_EPOCH + 1000 * DAY;
        let rotation = Rotation {
            injects: true,
            ..rotation()
        };
        let first = step(&rotation, None, start).unwrap();
        let made = start + 60 * DAY;
        let prepared = step(&rotation, Some(&first), made).unwrap();
        // For days the configurations could not be applied, or only the former bundle was.
        let old = first.bundle();
        let stays = rotation.step(Some(&prepared), made + 9 * DAY, Some(&old));
        assert!(matches!(stays, Ok(None)));
        let bundle = prepared.bundle();
        let injected = made + 10 * DAY;
        let noted = rotation.step(Some(&prepared), injected, Some(&bundle));
        let noted = noted.ok().flatten().unwrap();
        assert!(noted.current == first.current && noted.injected == Some(injected));
        // Other replicas read that it was.
        assert!(step(&rotation, Some(&noted), injected + HOUR / 2).is_none());
        let shown = step(&rotation, Some(&noted), injected + HOUR).unwrap();
        assert!(prepared.next == [shown.current] && shown.injected.is_none());
        // Rather than nothing valid, what clients may not yet trust is shown.
        assert!(step(&rotation, Some(&prepared), start + 89 * DAY).is_none());
        let late = step(&rotation, Some(&prepared), start + 90 * DAY - HOUR).unwrap();
        assert!(prepared.next == [late.current]);
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
        assert_eq!(prepared.next[0].names, more.names);
        // A replica that needs fewer names is content with more.
        let wide = step(&more, None, start).unwrap();
        assert!(step(&rotation, Some(&wide), start).is_none());
    }

    #[test]
    fn names_added_before_promotion_keep_all_certificates() {
        let (rotation, start) = (rotation(), Timestamp::UNIX_EPOCH + 1000 * DAY);
        let with = |name: &str| Rotation {
            names: vec![name.to_owned()],
            ..rotation.clone()
        };
        let first = step(&rotation, None, start).unwrap();
        let second = step(&with("second"), Some(&first), start).unwrap();
        let third = step(&with("third"), Some(&second), start).unwrap();
        // Clients may have any of the three bundles, and get a certificate that is trusted by theirs.
        assert!(third.current == first.current && third.next[0] == second.next[0]);
        let all = ["second", "third", "widgets.demo.svc"];
        assert_eq!(third.next[1].names, all);
        for authority in [&first.current, &third.next[0], &third.next[1]] {
            assert!(third.bundle().contains(authority.authority.trim_end()));
        }
        // Neither replica asks for more, and the last one is promoted.
        assert!(step(&with("second"), Some(&third), start).is_none());
        let promoted = step(&rotation, Some(&third), start + HOUR).unwrap();
        assert!(promoted.current == third.next[1] && promoted.next.is_empty());
        for former in [&first.current, &third.next[0]] {
            assert!(promoted.bundle().contains(former.authority.trim_end()));
        }
    }

    #[test]
    fn deleted_secret_keeps_current_certificate_until_successor_is_trusted() {
        let (rotation, start) = (rotation(), Timestamp::UNIX_EPOCH + 1000 * DAY);
        let first = step(&rotation, None, start).unwrap();
        let restored = rotation.restore(&first, start + DAY).ok().unwrap();
        assert!(restored.current == first.current && restored.next.len() == 1);
        assert!(step(&rotation, Some(&restored), start + DAY).is_none());
        let again = rotation.restore(&restored, start + DAY).ok().unwrap();
        assert!(again == restored, "a second deletion adds nothing");
        let promoted = step(&rotation, Some(&restored), start + DAY + HOUR).unwrap();
        assert!(restored.next == [promoted.current]);
    }
}
