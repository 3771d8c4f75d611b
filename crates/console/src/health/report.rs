//! The responses of probes, in the format of the API server.

use std::fmt::Write;

use http::StatusCode;

use crate::api::Check;

/// A probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Probe {
    Livez,
    Healthz,
    Readyz,
}

/// The response of a probe.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: String,
}

impl Probe {
    fn name(self) -> &'static str {
        match self {
            Self::Livez => "livez",
            Self::Healthz => "healthz",
            Self::Readyz => "readyz",
        }
    }

    /// Returns whether the probe lists a check.
    fn lists(self, check: &Check) -> bool {
        self == Self::Readyz || check.liveness
    }
}

/// Returns the response of a probe, with the parameters of its URL.
///
/// `verbose` lists the checks, and `exclude` leaves one out.
pub(crate) fn answer(probe: Probe, checks: &[Check], parameters: &str) -> Answer {
    let mut excluded = Vec::new();
    let mut is_verbose = false;
    for (name, value) in form_urlencoded::parse(parameters.as_bytes()) {
        match &*name {
            "verbose" => is_verbose = true,
            "exclude" => excluded.push(value),
            _ => {}
        }
    }
    let listed: Vec<&Check> = checks.iter().filter(|check| probe.lists(check)).collect();
    let mut body = String::new();
    let mut is_good = true;
    for check in &listed {
        if excluded.iter().any(|name| **name == check.name) {
            let _ = writeln!(body, "[+]{} excluded: ok", check.name);
            continue;
        }
        is_good &= check.ok || !check.readiness;
        line(&mut body, check);
    }
    // As the API server does, an unknown name is reported but does not fail the probe.
    excluded.retain(|name| listed.iter().all(|check| **name != check.name));
    for name in excluded {
        // The name is the client's, and may be of any length.
        let name: String = name.chars().take(100).collect();
        let _ = writeln!(body, "warn: there is no check {name:?} to exclude");
    }
    let (status, result) = if is_good {
        (StatusCode::OK, "passed")
    } else {
        (StatusCode::INTERNAL_SERVER_ERROR, "failed")
    };
    // A failed probe lists the checks without `verbose` too, as that of the API server.
    if is_good && !is_verbose {
        return Answer {
            status,
            body: "ok".to_owned(),
        };
    }
    let _ = writeln!(body, "{} check {result}", probe.name());
    Answer { status, body }
}

/// Returns the response of a probe for one check; none if it is not the probe's.
pub(crate) fn answer_one(probe: Probe, checks: &[Check], name: &str) -> Option<Answer> {
    let mut listed = checks.iter().filter(|check| probe.lists(check));
    // A check that exists but is not one of this probe is not found either, as in the API server.
    let check = listed.find(|check| check.name == name)?;
    let why = check.message.as_deref().unwrap_or("(no reason)");
    Some(if check.ok {
        Answer {
            status: StatusCode::OK,
            body: "ok".to_owned(),
        }
    } else {
        Answer {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            body: format!("{name} failed: {why}\n"),
        }
    })
}

fn line(body: &mut String, check: &Check) {
    let Check {
        name,
        message,
        readiness,
        ..
    } = check;
    let _ = match (check.ok, message) {
        (true, None) => writeln!(body, "[+]{name} ok"),
        (true, Some(note)) => writeln!(body, "[+]{name} ok: {note}"),
        (false, why) => {
            let why = why.as_deref().unwrap_or("(no reason)");
            let note = if *readiness { "" } else { ", does not count" };
            writeln!(body, "[-]{name} failed{note}: {why}")
        }
    };
}

#[cfg(test)]
mod tests {
    use super::super::builtin::{self, Counts};
    use super::*;

    fn checks() -> Vec<Check> {
        use Counts::{Liveness, Nothing, Readiness};
        let failed = |why: &str| Err(why.to_owned());
        vec![
            builtin::check("ping", Liveness, Ok(None)),
            builtin::check("caches", Readiness, failed("v1 Pod is listing")),
            builtin::check("watches", Nothing, failed("v1 Pod has none")),
            builtin::check("guards", Nothing, Ok(Some("one has tripped".to_owned()))),
        ]
    }

    #[track_caller]
    fn check(probe: Probe, parameters: &str, code: u16, body: &str) {
        let answer = answer(probe, &checks(), parameters);
        assert_eq!((answer.status.as_u16(), &*answer.body), (code, body));
    }

    #[test]
    fn a_probe_names_what_is_wrong() {
        let body = "[+]ping ok\n[-]caches failed: v1 Pod is listing\n[-]watches failed, does not count: v1 Pod has none\n\
                    [+]guards ok: one has tripped\nreadyz check failed\n";
        check(Probe::Readyz, "", 500, body);
        check(Probe::Readyz, "verbose", 500, body);
        check(Probe::Healthz, "", 200, "ok");
        check(
            Probe::Livez,
            "verbose=1",
            200,
            "[+]ping ok\nlivez check passed\n",
        );
    }

    #[test]
    fn checks_are_left_out_and_looked_at_one_by_one() {
        check(Probe::Readyz, "exclude=caches", 200, "ok");
        let body = "[+]ping ok\n[+]caches excluded: ok\n[-]watches failed, does not count: v1 Pod has none\n\
                    [+]guards ok: one has tripped\nwarn: there is no check \"x\" to exclude\nreadyz check passed\n";
        check(Probe::Readyz, "verbose&exclude=caches&exclude=x", 200, body);
        let one = |probe, name| {
            answer_one(probe, &checks(), name).map(|it| (it.status.as_u16(), it.body))
        };
        assert_eq!(one(Probe::Readyz, "ping"), Some((200, "ok".to_owned())));
        let failed = "caches failed: v1 Pod is listing\n".to_owned();
        assert_eq!(one(Probe::Readyz, "caches"), Some((500, failed)));
        assert_eq!(one(Probe::Livez, "caches"), None);
        assert_eq!(one(Probe::Readyz, "x"), None);
    }
}
