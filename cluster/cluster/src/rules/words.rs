//! Rules in words.

use std::fmt;

use super::rule::Rule;
use crate::journal::RequestFilter;

/// Writes a rule as a sentence, for logs and the admin endpoint.
///
/// An example: `All list requests for pods are answered 503 Service Unavailable, twice at most`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.filter.verb {
            Some(verb) => write!(f, "All {verb} requests")?,
            None => write!(f, "All {}", self.action().requests())?,
        }
        if let Some(kind) = &self.inner.kind {
            write!(f, " for the kind {kind}")?;
        }
        write!(f, "{} {}", Narrowed(&self.filter), self.action())?;
        self.write_limits(f)
    }
}

impl Rule {
    fn write_limits(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = &self.inner;
        match options.skip {
            0 => {}
            1 => f.write_str(", but not the first")?,
            skip => write!(f, ", but not the first {skip}")?,
        }
        match options.times {
            u64::MAX => {}
            1 => f.write_str(", once")?,
            2 => f.write_str(", twice at most")?,
            times => write!(f, ", {times} times at most")?,
        }
        if options.probability < 1.0 {
            // A negative probability counts as 0, but is stored as it was given.
            let percent = (options.probability * 100.0).max(0.0);
            write!(f, ", with a probability of {percent:.0} %")?;
        }
        if options.condition.is_some() {
            f.write_str(", if they satisfy a condition of the program")?;
        }
        if let Some(time) = options.lasts {
            write!(f, ", for {time:?}")?;
        }
        if options.until.is_some() {
            f.write_str(", until a certain time")?;
        }
        Ok(())
    }
}

/// The filter of a rule in words, after the word for its requests.
struct Narrowed<'a>(&'a RequestFilter);

impl fmt::Display for Narrowed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(filter) = self;
        if let Some(resource) = &filter.resource {
            write!(f, " for {resource}")?;
        }
        match filter.subresource.as_deref() {
            None => {}
            Some("") => f.write_str(" without a subresource")?,
            Some(subresource) => write!(f, "/{subresource}")?,
        }
        match filter.namespace.as_deref() {
            None => {}
            Some("") => f.write_str(" without a namespace")?,
            Some(namespace) => write!(f, " in the namespace {namespace}")?,
        }
        if let Some(name) = &filter.name {
            write!(f, " named {name}")?;
        }
        match filter.client.as_deref() {
            None | Some("") => Ok(()),
            Some(client) => write!(f, " of clients {client}*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::StatusCode;

    use super::*;
    use crate::fault::{Action, After, Refusal};

    fn check(rule: &Rule, expected: &str) {
        assert_eq!(rule.to_string(), expected);
    }

    #[test]
    fn a_rule_is_a_sentence() {
        let refuse = |code| Action::Refuse(Refusal::new(code));
        check(
            &Rule::new(refuse(StatusCode::SERVICE_UNAVAILABLE))
                .verb("list")
                .resource("pods")
                .times(2),
            "All list requests for pods are answered 503 Service Unavailable, twice at most",
        );
        check(
            &Rule::new(Action::Refuse(Refusal::too_many_requests())).kind("Pod"),
            "All requests for the kind Pod are answered 429 Too Many Requests in plain text, to be tried again after 1s",
        );
        check(
            &Rule::new(Action::CutWatch(After::Events(3)))
                .client("shop/")
                .probability(0.3)
                .for_time(Duration::from_secs(60)),
            "All watches of clients shop/* break in the middle of a line after 3 events, with a probability of 30 %, \
             for 60s",
        );
        check(
            &Rule::new(Action::Delay(Duration::from_millis(1500)))
                .resource("pods")
                .subresource("status")
                .namespace("shop")
                .name("web")
                .nth(1),
            "All requests for pods/status in the namespace shop named web wait 1.5s before they are handled, once",
        );
        check(
            &Rule::new(Action::Conflict).skip(2).when(|_| true),
            "All updates and patches find their object changed by another client just before, but not the first 2, if \
             they satisfy a condition of the program",
        );
    }
}
