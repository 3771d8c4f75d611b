//! The content of caches at rest.

use lariat_cache::{Metadata, Phase};
use lariat_sim::internals::{Rest, version_of};

use super::content::is_same;
use crate::check::wanted::wanted;
use crate::check::{Check, Findings};
use crate::oracle::Oracle;

/// At rest a cache equals the server: it has every object, with its content.
#[derive(Default)]
pub(in crate::check) struct Caches;

impl Check for Caches {
    fn name(&self) -> &'static str {
        "the cache equals the server"
    }

    fn at_rest(&mut self, oracle: &Oracle, rest: &Rest<'_>) -> Findings {
        let mut found = Vec::new();
        for status in rest.caches {
            let kind = &status.gvk;
            if status.phase != Phase::Synced && oracle.all(kind).next().is_some() {
                found.push(format!(
                    "{} is {}, but the server serves it",
                    kind.kind(),
                    status.phase
                ));
                continue;
            }
            let informers = rest
                .factories
                .iter()
                .filter_map(|each| each.caches().existing(kind));
            for informer in informers {
                let wanted = wanted(rest, kind);
                let cached = informer.cache::<Metadata>().snapshot();
                for (key, object) in oracle.all(kind).filter(|(key, it)| wanted.selects(key, it)) {
                    match cached.get(key) {
                        None => found.push(format!(
                            "{} {key} is missing, the server has version {}",
                            kind.kind(),
                            object.revision()
                        )),
                        Some(is) if version_of(is) != object.revision() => found.push(format!(
                            "{} {key} is at version {}, the server has {}",
                            kind.kind(),
                            version_of(is),
                            object.revision()
                        )),
                        Some(is) if !is_same(is, object) => found.push(format!(
                            "{} {key} has other content than the server at version {}",
                            kind.kind(),
                            object.revision()
                        )),
                        Some(_) => {}
                    }
                }
                for is in cached.iter() {
                    if !oracle
                        .now(kind, is.key())
                        .is_some_and(|now| wanted.selects(is.key(), now))
                    {
                        found.push(format!("{} {} is cached, but gone", kind.kind(), is.key()));
                    }
                }
            }
        }
        found
    }
}
