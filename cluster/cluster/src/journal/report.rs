//! Requests as people read them.

use std::fmt;

use super::entries::RecordedRequest;

/// The number of requests that are shown of a long list.
const SHOWN: usize = 40;

/// Requests in columns; of many the first.
pub(super) struct RequestTable<'a>(pub(super) &'a [RecordedRequest]);

impl fmt::Display for RequestTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(requests) = self;
        if requests.is_empty() {
            return f.write_str("  (no requests)\n");
        }
        let shown = &requests[..requests.len().min(SHOWN)];
        let wide =
            |width: fn(&RecordedRequest) -> usize| shown.iter().map(width).max().unwrap_or(0);
        let verb = wide(|request| request.verb.len()).max(4);
        let path = wide(|request| request.path.len()).max(4);
        writeln!(
            f,
            "  {:>11}  code  {:verb$}  {:path$}  client",
            "time", "verb", "path"
        )?;
        for request in shown {
            let code = request.code.map(|code| code.as_u16().to_string());
            writeln!(
                f,
                "  {:>10.3}s  {:>4}  {:verb$}  {:path$}  {}",
                request.at.as_secs_f64(),
                code.as_deref().unwrap_or("-"),
                request.verb,
                request.path,
                request.user_agent,
            )?;
        }
        match requests.len() - shown.len() {
            0 => Ok(()),
            more => writeln!(f, "  … and {more} more"),
        }
    }
}
