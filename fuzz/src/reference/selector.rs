//! Selectors, evaluated from their printed form.

/// Returns whether labels satisfy a label selector in the form it prints itself.
pub(crate) fn labels_match(printed: &str, labels: &[(String, String)]) -> bool {
    requirements(printed)
        .iter()
        .all(|requirement| holds(requirement, labels))
}

/// Splits at the commas that are in no parentheses.
fn requirements(printed: &str) -> Vec<&str> {
    let (mut parts, mut start, mut open) = (Vec::new(), 0, false);
    for (at, character) in printed.char_indices() {
        match character {
            '(' => open = true,
            ')' => open = false,
            ',' if !open => {
                parts.push(&printed[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&printed[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}

fn holds(requirement: &str, labels: &[(String, String)]) -> bool {
    // The value of the first label with the name counts; labels have distinct names.
    let value = |name: &str| {
        let label = labels.iter().find(|(key, _)| key == name);
        label.map(|(_, value)| value.as_str())
    };
    if let Some((name, set)) = requirement.split_once(" in (") {
        let mut set = set.trim_end_matches(')').split(',');
        return value(name).is_some_and(|value| set.any(|each| each == value));
    }
    if let Some((name, set)) = requirement.split_once(" notin (") {
        let mut set = set.trim_end_matches(')').split(',');
        return value(name).is_none_or(|value| set.all(|each| each != value));
    }
    if let Some(name) = requirement.strip_prefix('!') {
        return value(name).is_none();
    }
    if let Some((name, other)) = requirement.split_once("!=") {
        return value(name) != Some(other);
    }
    if let Some((name, wanted)) = requirement.split_once('=') {
        return value(name) == Some(wanted);
    }
    let number = |text: &str| text.parse::<i64>().ok();
    if let Some((name, bound)) = requirement.split_once('>') {
        return value(name).and_then(number) > number(bound);
    }
    if let Some((name, bound)) = requirement.split_once('<') {
        return value(name)
            .and_then(number)
            .is_some_and(|is| Some(is) < number(bound));
    }
    value(requirement).is_some()
}

/// Returns whether fields satisfy a field selector in the form it prints itself.
pub(crate) fn fields_match(printed: &str, field: impl Fn(&str) -> String) -> bool {
    let (mut rest, mut matches) = (printed, true);
    while !rest.is_empty() {
        let (term, after) = split_term(rest);
        rest = after;
        let at = term.find(['=', '!']).unwrap_or(term.len());
        let (path, condition) = term.split_at(at);
        let equal = !condition.starts_with('!');
        let value = condition
            .trim_start_matches('!')
            .strip_prefix('=')
            .unwrap_or_default();
        matches &= (field(path) == unescaped(value)) == equal;
    }
    matches
}

/// Splits at the first comma that no backslash escapes.
fn split_term(text: &str) -> (&str, &str) {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b',' if !escaped => return (&text[..at], &text[at + 1..]),
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    (text, "")
}

fn unescaped(value: &str) -> String {
    let (mut plain, mut escaped) = (String::new(), false);
    for character in value.chars() {
        escaped = character == '\\' && !escaped;
        if !escaped {
            plain.push(character);
        }
    }
    plain
}
