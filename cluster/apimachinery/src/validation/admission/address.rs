//! The address of a webhook.

use crate::go_url;
use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::formats;

pub(crate) fn check(config: &Field<'_>, causes: &mut Causes) {
    let (url, service) = (config.get("url"), config.get("service"));
    // None and both have the same message.
    if url.is_set() == service.is_set() {
        causes.required(config, "exactly one of url or service is required");
    } else if url.is_set() {
        check_url(&url, causes);
    } else {
        check_service(&service, causes);
    }
}

const FORM: &str = "; desired format: https://host[/path]";

fn check_url(at: &Field<'_>, causes: &mut Causes) {
    // `ValidateWebhookURL` reports a URL that cannot be parsed as a required value.
    let url = match go_url::parse(at.text()) {
        Ok(url) => url,
        Err(error) => {
            return causes.required(at, &format!("url must be a valid URL: {error}{FORM}"));
        }
    };
    let mut wrong = |is_wrong: bool, shown: &str, detail: String| {
        if is_wrong {
            causes.invalid_as(at, shown, &detail);
        }
    };
    let only = format!("'https' is the only allowed URL scheme{FORM}");
    // All parts are checked, so one URL may have several causes.
    wrong(url.scheme != "https", &url.scheme, only);
    wrong(
        url.host.is_empty(),
        url.host,
        format!("host must be specified{FORM}"),
    );
    let part = |what: &str| format!("{what} not permitted in the URL");
    wrong(
        url.user.is_some(),
        url.user.unwrap_or_default(),
        part("user information is"),
    );
    let (fragment, query) = (url.fragment, url.query);
    wrong(!fragment.is_empty(), fragment, part("fragments are"));
    wrong(!query.is_empty(), query, part("query parameters are"));
}

fn check_service(service: &Field<'_>, causes: &mut Causes) {
    // The Go code calls this check with the two in the wrong order, and so names the other one.
    if service.get("namespace").is_void() {
        causes.required(&service.get("name"), "");
    }
    if service.get("name").is_void() {
        causes.required(&service.get("namespace"), "");
    }
    let port = service.get("port");
    let number = port.int().unwrap_or(0);
    if !(1..=65535).contains(&number) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        causes.invalid_as(&port, number, detail);
    }
    check_path(&service.get("path"), causes);
}

fn check_path(at: &Field<'_>, causes: &mut Causes) {
    let path = at.text();
    // These two say that there is no path.
    if path.is_empty() || path == "/" {
        return;
    }
    if path == "//" {
        causes.invalid(at, "segment[0] may not be empty");
        return;
    }
    if !path.starts_with('/') {
        causes.invalid(at, "must start with a '/'");
    }
    let mut characters = path.chars();
    characters.next();
    let inner = characters.as_str();
    // One slash at the end is fine; segments are counted without it.
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    for (number, step) in inner.split('/').enumerate() {
        if step.is_empty() {
            causes.invalid(at, &format!("segment[{number}] may not be empty"));
            continue;
        }
        for message in formats::dns_subdomain(step) {
            causes.invalid(at, &format!("segment[{number}]: {message}"));
        }
    }
}
