//! Paths that name one field of a schema: `.spec.color`, `.spec['a.b']`.
//!
//! Source: `ValidFieldPath` in `schema/cel/validation.go`.

use serde_json::Value;

/// Follows a path through a schema to the schema at its end.
///
/// Returns the path as causes show it, too: `spec.color`, and `spec[key]` for the key of a map.
pub(crate) fn resolve<'a>(
    path: &str,
    schema: &'a Value,
    brackets: bool,
) -> Result<(String, &'a Value), String> {
    let (mut rest, mut schema) = (path, schema);
    let mut shown = String::new();
    while !rest.is_empty() {
        let name = if let Some(after) = rest.strip_prefix('.') {
            // The scanner of Go splits at these three and nothing else, so a name after a dot may contain any other
            // character.
            let end = after.find(['.', '[', ']']).unwrap_or(after.len());
            if after.is_empty() {
                return Err("unexpected end of JSON path".to_owned());
            }
            rest = &after[end..];
            after[..end].to_owned()
        } else if let Some(after) = rest.strip_prefix('[') {
            if !brackets {
                return Err("array notation is not allowed".to_owned());
            }
            let (name, after) = quoted(after)?;
            rest = after;
            name
        } else {
            let end = rest.find(['.', '[', ']']).unwrap_or(rest.len());
            // A lone `]` is a token too, so the excerpt is never empty.
            let token = &rest[..end.max(1)];
            return Err(format!("expected [ or . but got: {token}"));
        };
        let is_key = schema.get("properties").is_none();
        schema = below(schema, &name).ok_or("does not refer to a valid field")?;
        shown = match (is_key, shown.as_str()) {
            (true, _) => format!("{shown}[{name}]"),
            (false, "") => name,
            (false, _) => format!("{shown}.{name}"),
        };
    }
    Ok((shown, schema))
}

/// Reads a name in single quotes and the closing bracket.
fn quoted(text: &str) -> Result<(String, &str), String> {
    if text.is_empty() {
        return Err("unexpected end of JSON path".to_owned());
    }
    let unquoted = || format!("expected single quoted string but got {text}");
    let inside = text.strip_prefix('\'').ok_or_else(unquoted)?;
    // The scanner looks only at the byte before a quote, so one behind an escaped backslash does not end the name.
    let mut quotes = inside.match_indices('\'');
    let end = quotes.find(|(at, _)| !inside[..*at].ends_with('\\'));
    let (end, _) = end.ok_or_else(unquoted)?;
    let name = unescape(&inside[..end])?;
    let after = inside[end + 1..].strip_prefix(']');
    after
        .map(|after| (name, after))
        .ok_or_else(|| "unexpected end of JSON path".to_owned())
}

/// Replaces what is escaped as in texts of CEL.
// `unescapeSingleQuote`.
fn unescape(text: &str) -> Result<String, String> {
    let mut name = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            name.push(character);
            continue;
        }
        name.push(match characters.next() {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some(escaped @ ('\'' | '\\')) => escaped,
            other => {
                let other = other.map(String::from).unwrap_or_default();
                return Err(format!(
                    "invalid string literal: invalid escape char \\{other}"
                ));
            }
        });
    }
    Ok(name)
}

fn below<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    match schema.get("properties") {
        // Where a schema has properties, additional ones are not followed.
        Some(properties) => properties.get(name),
        None => schema.get("additionalProperties").filter(|s| s.is_object()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_name_fields_of_a_schema() {
        let schema = json!({"properties": {"spec": {"properties": {
            "a.b": {"type": "string"}, "a\n'b": {"type": "boolean"}, "map": {"additionalProperties": {"type": "integer"}},
        }}}});
        let end = |path, brackets| {
            resolve(path, &schema, brackets).map(|(_, schema)| schema["type"].clone())
        };
        assert_eq!(end(".spec['a.b']", true), Ok(json!("string")));
        assert_eq!(end(".spec.map.any", true), Ok(json!("integer")));
        assert_eq!(end(r".spec['a\n\'b']", true), Ok(json!("boolean")));
        let shown = |path| resolve(path, &schema, true).map(|(shown, _)| shown);
        assert_eq!(shown(".spec['a.b']"), Ok("spec.a.b".to_owned()));
        assert_eq!(shown(".spec.map['any']"), Ok("spec.map[any]".to_owned()));
        for (path, brackets) in [
            (r".spec['a\.b']", true),
            ("spec", true),
            (".", true),
            (".none", true),
            (".spec[0]", true),
            (".spec['a.b", true),
            (".spec['a.b']", false),
        ] {
            assert!(end(path, brackets).is_err(), "{path}");
        }
    }
}
