//! Rewrites what the interpreter does not know: structs, which are evaluated as maps, and a name with a dot.
//!
//! `Object{spec: Object.spec{replicas: 3}}` is the value `{"spec": {"replicas": 3}}`: the interpreter knows no types.

/// The variable whose name has a dot.
const DOTTED: &str = "authorizer.requestResource";
/// The name under which the interpreter has it.
pub(super) const REQUEST_RESOURCE: &str = "authorizer_requestResource";

/// Writes an expression so that the interpreter knows it.
pub(super) fn interpreted(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    // Of each open brace, whether it is that of a struct.
    let mut braces = Vec::new();
    let mut begins_member = false;
    while let Some(first) = rest.chars().next() {
        let token = token(rest, first);
        let (is_name, behind) = (is_name(first), &rest[token.len()..]);
        // Without a brace it is a variable that happens to have this name.
        if is_name && is_type(token) && behind.trim_start().starts_with('{') {
            let brace = behind.find('{').unwrap_or_default();
            written.push('{');
            braces.push(true);
            rest = &behind[brace + 1..];
            begins_member = true;
            continue;
        }
        match token {
            // A comma inside of these separates arguments and not members of a struct.
            "{" | "[" | "(" => braces.push(false),
            "}" | "]" | ")" => drop(braces.pop()),
            _ => {}
        }
        let in_struct = braces.last() == Some(&true);
        if let Some(behind) = token.strip_prefix(DOTTED).filter(|_| is_name) {
            written.push_str(REQUEST_RESOURCE);
            written.push_str(behind);
        } else if is_name && begins_member && in_struct {
            // A name of a field is written without quotes in a struct, and needs them as the key of a map.
            written.push_str(&format!("\"{}\"", token.trim_matches('`')));
        } else {
            written.push_str(token);
        }
        // `?field` is a member that is left out if its value is absent, so the name still follows.
        let is_blank = token.chars().all(|c| c.is_whitespace() || c == '?');
        begins_member = token == "," && in_struct || begins_member && is_blank;
        rest = behind;
    }
    written
}

fn is_name(first: char) -> bool {
    first == '_' || first == '`' || first.is_alphabetic()
}

/// Returns whether a name is that of a type of which there are literals.
fn is_type(name: &str) -> bool {
    name == "JSONPatch" || name == "Object" || name.starts_with("Object.")
}

/// Returns the first token: a text, a name with dots, or a character.
fn token(rest: &str, first: char) -> &str {
    let length = match first {
        // Texts are taken whole, since what looks like a struct in one is none.
        '"' | '\'' => quoted(rest, first),
        '`' => rest[1..].find('`').map_or(rest.len(), |end| end + 2),
        first if is_name(first) => {
            let is_part = |c: char| c == '_' || c == '.' || c.is_alphanumeric();
            rest.find(|c| !is_part(c)).unwrap_or(rest.len())
        }
        first => first.len_utf8(),
    };
    &rest[..length]
}

/// Returns the length of a text in quotes, which may be triple.
fn quoted(rest: &str, quote: char) -> usize {
    let triple = quote.to_string().repeat(3);
    if let Some(inner) = rest.strip_prefix(triple.as_str()) {
        // The two times three quotes.
        return inner.find(&triple).map_or(rest.len(), |end| end + 6);
    }
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_become_maps_and_all_else_stays() {
        for (text, expected) in [
            ("object.spec.replicas > 3", "object.spec.replicas > 3"),
            (
                "authorizer.requestResource.check('x')",
                "authorizer_requestResource.check('x')",
            ),
            (
                "Object{spec: Object.spec{replicas: 3}}",
                r#"{"spec": {"replicas": 3}}"#,
            ),
            (
                r#"[JSONPatch{op: "add", path: "/a{b: c", value: {"a": x.op}}]"#,
                r#"[{"op": "add", "path": "/a{b: c", "value": {"a": x.op}}]"#,
            ),
            (
                "Object{metadata: Object.metadata{?labels: f(a, b)}, spec: [g{a}]}",
                r#"{"metadata": {?"labels": f(a, b)}, "spec": [g{a}]}"#,
            ),
            (
                "has(x) ? Object{} : Object {a: 'it\\'s', b: 1}",
                "has(x) ? {} : {\"a\": 'it\\'s', \"b\": 1}",
            ),
            (
                "objectObject{a: 1} + \"Object{a: 1}\"",
                "objectObject{a: 1} + \"Object{a: 1}\"",
            ),
        ] {
            assert_eq!(interpreted(text), expected);
        }
    }

    #[test]
    fn texts_that_do_not_end_end_with_the_expression() {
        for text in ["'abc", "\"\"\"a", "`a", "Object{", "}}]]", "Object{a: '\\"] {
            interpreted(text);
        }
    }
}
