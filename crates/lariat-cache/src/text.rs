//! Keeping secrets out of texts.

/// Takes the quoted values out of a serde error, which may be secrets: `string "hunter2"` becomes
/// `string`.
pub(crate) fn without_values(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(start) = rest.find(" \"") {
        text.push_str(&rest[..start]);
        let quoted = &rest[start + 2..];
        // The value may itself contain quotes; what follows it is a comma or the end.
        let end = quoted
            .find("\", expected")
            .or_else(|| quoted.rfind('"'))
            .unwrap_or(quoted.len());
        rest = quoted.get(end + 1..).unwrap_or_default();
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_taken_out_of_serde_messages() {
        for value in ["hunter2", "a\"b", "a, expected", ""] {
            let json = serde_json::to_string(value).unwrap();
            let error = serde_json::from_str::<u16>(&json).unwrap_err().to_string();
            let text = without_values(&error);
            assert!(
                text.starts_with("invalid type: string, expected u16"),
                "{error} → {text}"
            );
            assert!(
                value.is_empty() || !text.contains(value),
                "{error} → {text}"
            );
        }
        assert_eq!(
            without_values("missing field `spec`"),
            "missing field `spec`"
        );
    }
}
