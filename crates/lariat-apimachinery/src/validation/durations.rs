//! Spans of time, as Go reads them.

const UNITS: [&str; 8] = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"];

/// Says what is wrong with a span such as `1h30m`.
pub(crate) fn check(text: &str) -> Result<(), String> {
    let invalid = || Err(format!("time: invalid duration {text:?}"));
    // `time.ParseDuration`, whose errors are part of the answer.
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    // The only number that needs no unit.
    if rest == "0" {
        return Ok(());
    }
    if rest.is_empty() {
        return invalid();
    }
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, behind) = rest.split_at(end);
        let digits = number.bytes().any(|byte| byte.is_ascii_digit());
        if !digits || number.matches('.').count() > 1 {
            return invalid();
        }
        let end = behind
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(behind.len());
        let (unit, next) = behind.split_at(end);
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {text:?}"));
        }
        if !UNITS.contains(&unit) {
            return Err(format!("time: unknown unit {unit:?} in duration {text:?}"));
        }
        rest = next;
    }
    Ok(())
}
