//! The parameters of a URL.

use std::borrow::Cow;

use form_urlencoded::parse;

use super::status::Refusal;
use crate::query::{Part, Query};
use crate::revision::Revision;

/// The core group in a path.
pub(super) const CORE: &str = "core";

/// Limits on the number of objects in a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pages {
    /// The number if the URL sets none.
    pub(super) default: u64,
    /// The largest number that a URL may set.
    pub(super) largest: u64,
}

/// The parameters of a list or a watch.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) query: Query,
    pub(super) is_watch: bool,
}

impl Target {
    /// Reads the part after the question mark.
    pub(super) fn read(parameters: &str, pages: Pages) -> Result<Self, Refusal> {
        // The query itself does not know `watch`, so it is taken out first.
        let (is_watch, others) = watch(parameters)?;
        let mut others = Cow::Borrowed(&*others);
        let has = |wanted: &str| {
            parse(parameters.as_bytes()).any(|(name, value)| name == wanted && !value.is_empty())
        };
        if has("continue") && !has("limit") {
            // The link continues a list that had no limit either.
            let separator = if others.is_empty() { "" } else { "&" };
            others = Cow::Owned(format!("{others}{separator}limit={}", pages.default));
        }
        let mut query = Query::from_url(&others)?;
        // A watch sends changes without an end, so no page bounds it.
        if !is_watch {
            query = pages.apply(query)?;
        }
        Ok(Self { query, is_watch })
    }
}

impl Pages {
    fn apply(self, mut query: Query) -> Result<Query, Refusal> {
        let (parameter, size) = match &query.part {
            Part::All => {
                query = query.limit(self.default);
                ("limit", self.default)
            }
            Part::Page { size, .. } => ("pagesize", *size),
            Part::After { limit, .. } => ("limit", *limit),
            Part::Nothing => return Ok(query),
        };
        if size > self.largest {
            let largest = self.largest;
            let message = format!(
                "the parameter {parameter} is {size}: a list has at most {largest} objects; request more of them page by page"
            );
            return Err(Refusal::parameter(parameter, message));
        }
        Ok(query)
    }
}

/// Reads the parameters of a single object: at most a revision.
pub(super) fn of_object(parameters: &str) -> Result<Option<Revision>, Refusal> {
    let mut query = Query::from_url(parameters)?;
    let revision = query.at_least.take();
    // The parser of lists is reused, so anything it read besides the revision is refused.
    if query != Query::new() {
        let other = parse(parameters.as_bytes()).find(|(name, _)| name != "revision");
        let name = other.map(|(name, _)| name.into_owned()).unwrap_or_default();
        let message =
            format!("the parameter {name} does not apply to a single object: only revision does");
        return Err(Refusal::parameter(&name, message));
    }
    Ok(revision)
}

/// Refuses parameters on routes that have none.
pub(super) fn of_none(parameters: &str) -> Result<(), Refusal> {
    match parse(parameters.as_bytes()).next() {
        None => Ok(()),
        Some((name, _)) => {
            let message = format!("unknown parameter {name:?}: this path has no parameters");
            Err(Refusal::parameter(&name, message))
        }
    }
}

/// Takes the parameter `watch` from the others.
fn watch(parameters: &str) -> Result<(bool, String), Refusal> {
    let mut is_watch = None;
    let mut others = Vec::new();
    for pair in parameters.split('&') {
        let read = parse(pair.as_bytes()).next();
        let Some((_, value)) = read.filter(|(name, _)| name == "watch") else {
            others.push(pair);
            continue;
        };
        let value = match &*value {
            "" | "true" | "1" => true,
            "false" | "0" => false,
            other => {
                let message = format!("the parameter watch is {other:?}: it takes true or false");
                return Err(Refusal::parameter("watch", message));
            }
        };
        if is_watch.replace(value).is_some() {
            let message = "the parameter watch is given twice: give it once";
            return Err(Refusal::parameter("watch", message));
        }
    }
    Ok((is_watch.unwrap_or_default(), others.join("&")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: Pages = Pages {
        default: 10,
        largest: 20,
    };

    fn read(parameters: &str) -> Result<(String, bool), String> {
        let target = Target::read(parameters, PAGES);
        let message = |refusal: Refusal| refusal.status()["message"].as_str().unwrap().to_owned();
        target
            .map(|it| (it.query.to_url(), it.is_watch))
            .map_err(message)
    }

    #[test]
    fn lists_have_a_size_and_watches_do_not() {
        let url = |parameters| read(parameters).unwrap().0;
        assert_eq!(url(""), "limit=10");
        assert_eq!(url("search=a"), "search=a&limit=10");
        assert_eq!(url("limit=20"), "limit=20");
        assert_eq!(url("continue="), "limit=10");
        assert_eq!(url("continue=abc"), "limit=10&continue=abc");
        assert_eq!(url("pagesize=3"), "page=1&pagesize=3");
        assert_eq!(url("summaryonly"), "summaryonly=true");
        assert_eq!(read("watch=true"), Ok((String::new(), true)));
        assert_eq!(read("%77atch&search=a"), Ok(("search=a".to_owned(), true)));
        assert!(!read("watch=false").unwrap().1);
    }

    proptest::proptest! {
        #[test]
        fn any_parameters_are_read_or_refused(
            parameters in "((filter|sort|watch|limit|page|continue|revision|%77|&|=|%|\\+|[a-z]|[0-9]|.){0,6}[=&]?){0,6}"
        ) {
            match read(&parameters) {
                // What was read has a size that is allowed, and is the same when it is read again.
                Ok((url, false)) => {
                    let again = Query::from_url(&url).unwrap();
                    let size = match again.part {
                        Part::Page { size, .. } => size,
                        Part::After { limit, .. } => limit,
                        Part::All => u64::MAX,
                        Part::Nothing => 0,
                    };
                    proptest::prop_assert!(size <= PAGES.largest);
                }
                Ok((_, true)) => {}
                Err(message) => proptest::prop_assert!(!message.is_empty()),
            }
            let _ = (of_object(&parameters), of_none(&parameters));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (parameters, named) in [
            ("limit=21", "limit"),
            ("pagesize=21", "pagesize"),
            ("watch=yes", "watch"),
            ("watch&watch", "watch"),
            ("colour=red", "\"colour\""),
        ] {
            let error = read(parameters).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
        assert!(of_object("filter=a=b").is_err());
        assert!(of_object("revision=7").unwrap().is_some());
        assert!(of_none("a=b").is_err());
        assert!(of_none("").is_ok());
    }
}
