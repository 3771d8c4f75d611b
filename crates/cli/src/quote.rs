//! Quoting for shells, TOML and Dockerfiles.

use std::path::Path;

/// Writes a path as a shell reads it.
pub(crate) fn shell(path: &Path) -> String {
    shell_text(&path.display().to_string())
}

/// Writes an argument as a shell reads it: as it is, or in single quotes.
pub(crate) fn shell_text(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-./_:@%+,=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        // Nothing is special within single quotes, so a quote ends them, is escaped, and begins them again.
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Writes a string of TOML.
pub(crate) fn toml(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            // A basic string of TOML may contain no control character.
            control if control.is_control() => {
                quoted.push_str(&format!("\\u{:04X}", u32::from(control)));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// Quotes an element of a list in a Dockerfile, which expands variables.
pub(crate) fn dockerfile(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        if matches!(character, '\\' | '"' | '\'' | '$') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    // The list is JSON.
    serde_json::Value::from(escaped).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_no_quotes_gets_none() {
        assert_eq!(shell(Path::new("../lariat/a_b-1.2")), "../lariat/a_b-1.2");
    }

    #[test]
    fn every_character_survives_its_syntax() {
        let text = "a \"b\" 'c' $d \\e é";
        assert_eq!(shell_text(text), r#"'a "b" '\''c'\'' $d \e é'"#);
        assert_eq!(shell_text(""), "''");
        assert_eq!(toml(text), r#""a \"b\" 'c' $d \\e é""#);
        assert_eq!(toml("a\tb"), r#""a\u0009b""#);
        let json: String = serde_json::from_str(&dockerfile(text)).unwrap();
        assert_eq!(json, r#"a \"b\" \'c\' \$d \\e é"#);
    }
}
