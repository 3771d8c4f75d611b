//! JSON paths, against walks through members and items.

use lariat_cluster::fuzzing::follow;
use serde_json::Value;

use crate::input::split;

/// The first line is a path, the rest the JSON it is followed through.
pub(crate) fn run(data: &[u8]) {
    let (path, root) = split(data);
    let (Ok(path), Ok(root)) = (std::str::from_utf8(path), serde_json::from_slice(root)) else {
        return;
    };
    let Ok(found) = follow(path, &root) else {
        return;
    };
    if let Some(found) = &found {
        assert!(is_within(found, &root), "{path:?} leads to {found}");
    }
    if let Some(tokens) = plain(path) {
        let walked = tokens.iter().try_fold(&root, |at, token| step(at, token));
        assert_eq!(found.as_ref(), walked, "{path:?}");
        let braces = follow(&format!("{{{path}}}"), &root);
        assert_eq!(braces.as_ref(), Ok(&found), "braces around {path:?}");
    }
}

fn is_within(value: &Value, root: &Value) -> bool {
    value == root
        || match root {
            Value::Array(items) => items.iter().any(|item| is_within(value, item)),
            Value::Object(members) => members.values().any(|member| is_within(value, member)),
            _ => false,
        }
}

enum Token<'a> {
    Member(&'a str),
    Item(usize),
}

/// Takes a path apart that has only names behind dots and numbers in brackets.
fn plain(mut path: &str) -> Option<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    while !path.is_empty() {
        if let Some(rest) = path.strip_prefix('[') {
            let (index, after) = rest.split_once(']')?;
            let is_number = index.bytes().all(|byte| byte.is_ascii_digit());
            tokens.push(Token::Item(index.parse().ok().filter(|_| is_number)?));
            path = after;
        } else {
            let rest = path.strip_prefix('.')?;
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let name = &rest[..end];
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            if name.is_empty() || !name.bytes().all(is_name) {
                return None;
            }
            tokens.push(Token::Member(name));
            path = &rest[end..];
        }
    }
    Some(tokens)
}

fn step<'a>(value: &'a Value, token: &Token<'_>) -> Option<&'a Value> {
    match token {
        Token::Member(name) => value.as_object()?.get(*name),
        Token::Item(at) => value.as_array()?.get(*at),
    }
}
