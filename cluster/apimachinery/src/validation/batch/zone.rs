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
    if !name.split('/').all(is_part) {
        causes.invalid_json(at, &format!("unknown time zone {name}"));
        return;
    }
    // `validateTimeZone`: it would mean whatever the server's machine has.
    if name.eq_ignore_ascii_case("Local") {
        let detail =
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        causes.invalid_json(at, detail);
    }
    if let Err(error) = load(name) {
        causes.invalid_json(at, &error);
    }
}

/// Loads a time zone; the error is Go's.
fn load(name: &str) -> Result<(), String> {
    // `time.LoadLocation`: a name is a path in the database of time zones.
    if name.contains("..") || name.starts_with(['/', '\\']) {
        return Err("time: invalid location name".to_owned());
    }
    if matches!(name, "" | "Local") || is_known(name) {
        return Ok(());
    }
    Err(format!("unknown time zone {name}"))
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
///
/// # Errors
///
/// The time zone cannot be loaded.
pub(super) fn without(schedule: &str) -> Result<&str, String> {
    // `Parser.Parse` in `github.com/robfig/cron/v3`.
    let Some(zoned) = ["TZ=", "CRON_TZ="]
        .iter()
        .find_map(|prefix| schedule.strip_prefix(prefix))
    else {
        return Ok(schedule);
    };
    // It panics where nothing follows the zone, which `ParseCronScheduleWithPanicRecovery` reports.
    let Some((name, rest)) = zoned.split_once(' ') else {
        let panic = "invalid schedule format: runtime error: slice bounds out of range [:-1]";
        return Err(panic.to_owned());
    };
    load(name).map_err(|error| format!("provided bad location {name}: {error}"))?;
    Ok(rest.trim())
}
