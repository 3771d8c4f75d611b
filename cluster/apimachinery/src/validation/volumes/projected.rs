//! Volumes that put several sources together.

use std::collections::HashSet;

use super::downward;
use super::local::check_item;
use super::options::Options;
use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::paths;

/// The paths that the sources before took.
type Paths<'a> = HashSet<&'a str>;

// The order of `validateProjectionSources`. A source with none of these gets no cause, only a warning.
const SOURCES: [&str; 4] = ["secret", "configMap", "downwardAPI", "serviceAccountToken"];

pub(super) fn volume(at: &Field<'_>, options: Options, causes: &mut Causes) {
    paths::check_mode(&at.get("defaultMode"), causes);
    let mut taken = Paths::new();
    for source in at.get("sources").items() {
        // All members of a source are checked before there is a cause for having several.
        let given = source.given(&SOURCES);
        for member in &given {
            let below = source.get(member);
            match *member {
                // Paths are compared as texts, so `a` and `a/b` or `a/` do not conflict here; that gets a warning.
                "downwardAPI" => files(at, &below, &mut taken, causes),
                "serviceAccountToken" => token(at, &below, options, causes),
                _ => items(at, &below, &mut taken, causes),
            }
        }
        if given.len() > 1 {
            let detail = "may not specify more than 1 volume type per source";
            causes.forbidden(&source, detail);
        }
    }
}

const TAKEN: &str = "conflicting duplicate paths";

fn items<'a>(volume: &Field<'a>, source: &Field<'a>, taken: &mut Paths<'a>, causes: &mut Causes) {
    causes.check_given(&source.get("name"), "");
    for item in source.get("items").items() {
        check_item(&item, causes);
        let path = item.text_of("path");
        if !path.is_empty() && !taken.insert(path) {
            // The wrong value is the name of the Secret or ConfigMap for items, but the path itself for files of the
            // downward API.
            causes.invalid_as(volume, source.text_of("name"), TAKEN);
        }
    }
}

fn files<'a>(volume: &Field<'a>, source: &Field<'a>, taken: &mut Paths<'a>, causes: &mut Causes) {
    for item in source.get("items").items() {
        downward::check_file(&source.with(item.value()), causes);
        let path = item.text_of("path");
        if !path.is_empty() && !taken.insert(path) {
            causes.invalid_as(volume, path, TAKEN);
        }
    }
}

fn token(volume: &Field<'_>, source: &Field<'_>, options: Options, causes: &mut Causes) {
    let at = source.get("expirationSeconds");
    // Not a pointer in Go: the default of an hour has been filled in, so a zero was given.
    let seconds = at.int().unwrap_or(0);
    if seconds < 600 {
        let detail = "may not specify a duration less than 10 minutes";
        causes.invalid_as(&at, seconds, detail);
    } else if seconds > 1 << 32 {
        let detail = "may not specify a duration larger than 2^32 seconds";
        causes.invalid_as(&at, seconds, detail);
    }
    // Go's path is that of the volume and not of the source; and the path of a token is not among those that conflict.
    let path = volume.get("path").with(source.member("path"));
    if causes.check_given(&path, "") && !options.any_token_path {
        paths::check_local(&path, causes);
    }
}
