//! The styles and scripts that the pages of the services share.

/// A file of a page.
#[derive(Debug, Clone, Copy)]
pub struct PageFile {
    /// The path at which it is served.
    pub path: &'static str,
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// The content.
    pub text: &'static str,
}

/// The `Content-Security-Policy` of a page: its own files, and requests to its origin.
pub const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

macro_rules! files {
    ($($name:literal $content_type:literal),* $(,)?) => {
        &[$(PageFile {
            path: concat!("/assets/", $name),
            content_type: $content_type,
            text: include_str!($name),
        }),*]
    };
}

/// The files that pages share, under `/assets/`.
pub const PAGE_FILES: &[PageFile] = files![
    "style.css" "text/css; charset=utf-8",
    "tables.css" "text/css; charset=utf-8",
    "chart.js" "text/javascript; charset=utf-8",
    "dom.js" "text/javascript; charset=utf-8",
    "http.js" "text/javascript; charset=utf-8",
    "login.js" "text/javascript; charset=utf-8",
    "numbers.js" "text/javascript; charset=utf-8",
    "table.js" "text/javascript; charset=utf-8",
];

/// Puts shared files and files of its own into a page that is one file.
///
/// A page below a prefix that it does not know cannot load files. In it, a comment such as `/* style.css */` is where the
/// file of that name goes. Scripts become parts of one classic script, without `export`.
///
/// # Panics
///
/// If a script that goes into the page imports others.
#[must_use]
pub fn with_files_inside(page: &str, own: &[(&str, &str)]) -> String {
    let shared = PAGE_FILES.iter().map(|file| {
        let name = file.path.trim_start_matches("/assets/");
        (name, file.text)
    });
    let files = shared.chain(own.iter().copied());
    files.fold(page.to_owned(), |page, (name, text)| {
        let mark = format!("/* {name} */");
        if !page.contains(&mark) {
            return page;
        }
        assert!(!text.contains("\nimport "), "{name} imports others");
        page.replace(&mark, &text.replace("\nexport ", "\n"))
    })
}

#[cfg(test)]
mod tests {
    use lariat_testing::pages;

    use super::*;

    #[test]
    fn a_page_with_files_inside_has_neither_marks_nor_exports() {
        let page = "<style>/* style.css */</style><script>/* numbers.js */\n/* own.js */</script>";
        let page = with_files_inside(page, &[("own.js", "count(1);")]);
        assert!(page.starts_with("<style>/* Dense") && page.ends_with("count(1);</script>"));
        assert!(page.contains("\nconst count = ") && !page.contains("export"));
    }

    #[test]
    fn shared_files_load_nothing_and_make_no_markup_of_texts() {
        for file in PAGE_FILES {
            assert_eq!(
                pages::loaded_from_elsewhere(file.text),
                [""; 0],
                "{}",
                file.path
            );
            assert_eq!(pages::unsafe_parts(file.text), [""; 0], "{}", file.path);
        }
    }
}
