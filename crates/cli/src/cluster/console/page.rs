//! The files of the page.

/// A file of the page.
pub(super) struct Asset {
    pub(super) path: &'static str,
    pub(super) content_type: &'static str,
    pub(super) text: &'static str,
}

/// The `Content-Security-Policy`: the page's own files, and requests to where it came from.
pub(super) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The files, which say nothing about the cluster and so need no token.
///
/// The style is that of the console of programs.
pub(super) const ASSETS: [Asset; 5] = [
    Asset {
        path: "/",
        content_type: "text/html; charset=utf-8",
        text: include_str!("page/index.html"),
    },
    Asset {
        path: "/assets/style.css",
        content_type: "text/css; charset=utf-8",
        text: lariat_console::STYLE,
    },
    Asset {
        path: "/assets/cluster.css",
        content_type: "text/css; charset=utf-8",
        text: include_str!("page/cluster.css"),
    },
    Asset {
        path: "/assets/main.js",
        content_type: "text/javascript; charset=utf-8",
        text: include_str!("page/main.js"),
    },
    Asset {
        path: "/assets/icon.svg",
        content_type: "image/svg+xml",
        text: include_str!("page/icon.svg"),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_needs_nothing_but_its_own_files() {
        for asset in &ASSETS {
            let without_namespace = asset.text.replace("http://www.w3.org/2000/svg", "");
            for outside in ["http:", "https:", "url(", "@import", "//cdn"] {
                assert!(
                    !without_namespace.contains(outside),
                    "{}: {outside}",
                    asset.path
                );
            }
        }
        let html = ASSETS[0].text;
        for asset in &ASSETS[1..] {
            assert!(html.contains(&asset.path[1..]), "{}", asset.path);
        }
        for inline in ["<style", "<script>", " style=", " onclick=", "javascript:"] {
            assert!(!html.contains(inline), "{inline}");
        }
    }

    #[test]
    fn nothing_from_the_cluster_becomes_markup_or_script() {
        let script = ASSETS.iter().find(|asset| asset.path.ends_with(".js"));
        let script = script.expect("there is a script").text;
        for unsafe_ in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "Function(",
            "createContextualFragment",
            "DOMParser",
            "srcdoc",
            "localStorage",
            ".style",
        ] {
            assert!(!script.contains(unsafe_), "{unsafe_}");
        }
    }
}
