//! The styles and scripts that the pages of the services share.

/// A file of a page.
#[derive(Debug, Clone, Copy)]
pub struct PageFile {
    path: &'static str,
    text: &'static str,
}

impl PageFile {
    /// Creates a file that is served at a path.
    #[must_use]
    pub const fn new(path: &'static str, text: &'static str) -> Self {
        Self { path, text }
    }

    /// Returns the path at which it is served.
    #[must_use]
    pub fn path(&self) -> &'static str {
        self.path
    }

    /// Returns the content.
    #[must_use]
    pub fn text(&self) -> &'static str {
        self.text
    }

    /// Returns the value of `Content-Type`, by the ending of the path.
    ///
    /// A path without one is a page.
    #[must_use]
    pub fn content_type(&self) -> &'static str {
        match self.path.rsplit('.').next() {
            Some("css") => "text/css; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "text/html; charset=utf-8",
        }
    }

    fn name(&self) -> &'static str {
        self.path.trim_start_matches("/assets/")
    }
}

/// Lists files beside the one that calls it, which are served under `/assets/`.
#[macro_export]
macro_rules! page_files {
    ($($name:literal),* $(,)?) => {
        &[$($crate::PageFile::new(concat!("/assets/", $name), include_str!($name))),*]
    };
}

/// The `Content-Security-Policy` of a page.
///
/// It allows files and requests of its origin, and nothing that is inline.
pub const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The files that pages share, under `/assets/`.
pub const PAGE_FILES: &[PageFile] = page_files![
    "chart.js",
    "dom.js",
    "http.js",
    "login.js",
    "numbers.js",
    "style.css",
    "table.js",
    "tables.css",
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
pub fn with_files_inside(page: &str, own: &[PageFile]) -> String {
    let files = PAGE_FILES.iter().chain(own);
    files.fold(page.to_owned(), |page, file| {
        let mark = format!("/* {} */", file.name());
        if !page.contains(&mark) {
            return page;
        }
        assert!(!file.text.contains("\nimport "), "{mark} imports others");
        page.replace(&mark, &file.text.replace("\nexport ", "\n"))
    })
}

#[cfg(test)]
mod tests {
    use lariat_testing::pages;

    use super::*;

    #[test]
    fn a_page_with_files_inside_has_neither_marks_nor_exports() {
        let page = "<style>/* style.css */</style><script>/* numbers.js */\n/* own.js */</script>";
        let page = with_files_inside(page, &[PageFile::new("/assets/own.js", "count(1);")]);
        assert!(page.starts_with("<style>/* Dense") && page.ends_with("count(1);</script>"));
        assert!(page.contains("\nconst count = ") && !page.contains("export"));
    }

    #[test]
    fn content_types_follow_the_ending() {
        let types = ["/", "/assets/a.css", "/assets/b.js"]
            .map(|path| PageFile::new(path, "").content_type());
        let expected =
            ["html", "css", "javascript"].map(|kind| format!("text/{kind}; charset=utf-8"));
        assert_eq!(types, expected);
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
