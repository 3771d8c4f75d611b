//! Time zones.

use jiff::tz::TimeZone;

use crate::validation::causes::Causes;
use crate::validation::field::Field;

/// Checks the name of a time zone.
pub(super) fn check(at: &Field<'_>, causes: &mut Causes) {
    let name = at.text();
    if name.is_empty() {
        causes.invalid_json(at, "timeZone must be nil or non-empty string");
        return;
    }
    let unknown = format!("unknown time zone {name}");
    // `time.LoadLocation` refuses these, since a name is a path in the database of time zones.
    if name.contains("..") || name.starts_with(['/', '\\']) {
        causes.invalid_json(at, "time: invalid location name");
        return;
    }
    if !name.split('/').all(is_part) {
        causes.invalid_json(at, &unknown);
        return;
    }
    // `validateTimeZone`: it would mean whatever the server's machine has.
    if name.eq_ignore_ascii_case("Local") {
        let detail =
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        causes.invalid_json(at, detail);
    }
    if name != "Local" && !is_known(name) {
        causes.invalid_json(at, &unknown);
    }
}

fn is_part(part: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte);
    (1..=14).contains(&part.len())
        && !matches!(part, "." | "..")
        && !part.starts_with('-')
        && part.bytes().all(fits)
}

/// Returns whether a time zone has exactly this name.
///
/// Without a time zone database every name is valid.
fn is_known(name: &str) -> bool {
    name == "UTC"
        || jiff::tz::db().is_definitively_empty()
        // Go looks the name up as a file, so its case matters. Here it is found in any case.
        || TimeZone::get(name).is_ok_and(|zone| zone.iana_name() == Some(name))
}

/// Returns a schedule without the time zone in front of it.
pub(super) fn without(schedule: &str) -> &str {
    let has_zone = schedule.starts_with("TZ=") || schedule.starts_with("CRON_TZ=");
    match schedule.split_once(' ') {
        Some((_, rest)) if has_zone => rest.trim(),
        _ => schedule,
    }
}
