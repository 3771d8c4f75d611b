//! Paths that name one field of a schema: `.spec.color`, `.spec['a.b']`.
//!
//! Source: `ValidFieldPath` in `schema/cel/validation.go`.

use serde_json::Value;

/// Follows a path through a schema to the schema at its end.
///
/// Returns the field names on the way, too.
pub(crate) fn resolve<'a>(
    path: &str,
    schema: &'a Value,
    brackets: bool,
) -> Result<(Vec<String>, &'a Value), String> {
    let (mut rest, mut schema) = (path, schema);
    let mut names = Vec::new();
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
        schema = below(schema, &name).ok_or("does not refer to a valid field")?;
        names.push(name);
    }
    Ok((names, schema))
}

/// Reads a name in single quotes and the closing bracket.
fn quoted(text: &str) -> Result<(String, &str), String> {
    if text.is_empty() {
        return Err("unexpected end of JSON path".to_owned());
    }
    let inside = text
        .strip_prefix('\'')
        .ok_or_else(|| format!("expected single quoted string but got {text}"))?;
    let mut name = String::new();
    let mut characters = inside.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            // The character behind a backslash is taken as it is, so that a name may contain a quote.
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            '\'' => {
                let after = inside[at + 1..].strip_prefix(']');
                return after
                    .map(|after| (name, after))
                    .ok_or_else(|| "unexpected end of JSON path".to_owned());
            }
            other => name.push(other),
        }
    }
    Err(format!("expected single quoted string but got {text}"))
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
            "a.b": {"type": "string"}, "map": {"additionalProperties": {"type": "integer"}},
        }}}});
        let end = |path, brackets| {
            resolve(path, &schema, brackets).map(|(_, schema)| schema["type"].clone())
        };
        assert_eq!(end(".spec['a.b']", true), Ok(json!("string")));
        assert_eq!(end(".spec.map.any", true), Ok(json!("integer")));
        for (path, brackets) in [
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
