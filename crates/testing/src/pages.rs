//! Finds in the files of a page what must not be there.
//!
//! A file is its path and its text; the first one is the page itself, and the others are below `/assets/`.

use std::collections::BTreeSet;

/// A name, not an address that is loaded.
const SVG: &str = "http://www.w3.org/2000/svg";

/// What a text would load from elsewhere, or what is inline and so does not run under a policy.
const ELSEWHERE: [&str; 10] = [
    "http:",
    "https:",
    "url(",
    "@import",
    "//cdn",
    " style=",
    "<style",
    "<script>",
    " onclick=",
    "javascript:",
];

/// What makes markup or a script of a text.
const UNSAFE: [&str; 9] = [
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "eval(",
    "Function(",
    "createContextualFragment",
    "DOMParser",
    "srcdoc",
];

/// Returns what a file has that is loaded from elsewhere or inline.
#[must_use]
pub fn loaded_from_elsewhere(text: &str) -> Vec<&'static str> {
    found(&ELSEWHERE, &text.replace(SVG, ""))
}

/// Returns what a script has that makes markup or a script of a text.
#[must_use]
pub fn unsafe_parts(script: &str) -> Vec<&'static str> {
    found(&UNSAFE, script)
}

fn found(forbidden: &[&'static str], text: &str) -> Vec<&'static str> {
    let is_there = |part: &&'static str| text.contains(*part);
    forbidden.iter().copied().filter(is_there).collect()
}

/// Returns the files that are loaded and are not there.
///
/// The page loads files, and scripts import others.
#[must_use]
pub fn missing<'a>(files: &[(&'a str, &'a str)]) -> Vec<&'a str> {
    let loaded = loaded(files).into_iter();
    let is_there = |name: &&str| files.iter().any(|(path, _)| name_of(path) == *name);
    loaded.filter(|name| !is_there(name)).collect()
}

/// Returns the files that neither the page loads nor a script imports.
#[must_use]
pub fn unused<'a>(files: &[(&'a str, &'a str)]) -> Vec<&'a str> {
    let loaded = loaded(files);
    let names = files.iter().skip(1).map(|(path, _)| name_of(path));
    names.filter(|name| !loaded.contains(name)).collect()
}

fn name_of(path: &str) -> &str {
    path.trim_start_matches("/assets/")
}

fn loaded<'a>(files: &[(&'a str, &'a str)]) -> BTreeSet<&'a str> {
    let html = files.first().map_or("", |(_, text)| text);
    let linked = between(html, "href=\"assets/", '"').chain(between(html, "src=\"assets/", '"'));
    let imported = files.iter().flat_map(|(_, text)| {
        between(text, " from './", '\'').chain(between(text, "import './", '\''))
    });
    linked.chain(imported).collect()
}

/// Returns the texts between two marks.
fn between<'a>(text: &'a str, begin: &'static str, end: char) -> impl Iterator<Item = &'a str> {
    let parts = text.split(begin).skip(1);
    parts.map(move |part| part.split(end).next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_missing_or_unused_are_found() {
        let files = [
            (
                "/",
                "<link href=\"assets/a.css\"><script src=\"assets/main.js\">",
            ),
            (
                "/assets/main.js",
                "import { h } from './dom.js';\nimport './theme.js';",
            ),
            ("/assets/dom.js", ""),
            ("/assets/old.js", ""),
        ];
        assert_eq!(missing(&files), ["a.css", "theme.js"]);
        assert_eq!(unused(&files), ["old.js"]);
    }

    #[test]
    fn addresses_and_markup_are_found() {
        let text = format!("const SPACE = '{SVG}'; fetch('https://a'); node.innerHTML = text;");
        assert_eq!(loaded_from_elsewhere(&text), ["https:"]);
        assert_eq!(unsafe_parts(&text), ["innerHTML"]);
    }
}
