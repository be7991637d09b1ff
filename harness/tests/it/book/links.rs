//! Links between the documents.

use std::path::{Component, Path, PathBuf};

use super::markdown::{Page, links};

/// A line for each relative link whose file or anchor does not exist.
pub(super) fn broken(root: &Path, pages: &[Page]) -> Vec<String> {
    let mut broken = Vec::new();
    for page in pages {
        for (line, link) in links(&page.text) {
            if let Some(reason) = reason(root, pages, page, &link) {
                broken.push(format!("{}:{line}: {link}: {reason}", page.name));
            }
        }
    }
    broken
}

fn reason(root: &Path, pages: &[Page], page: &Page, link: &str) -> Option<&'static str> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let folder = Path::new(&page.name).parent().unwrap_or(Path::new(""));
    let target = if path.is_empty() { PathBuf::from(&page.name) } else { plain(&folder.join(path))? };
    if !path.is_empty() && !root.join(&target).exists() {
        return Some("there is no such file");
    }
    let linked = pages.iter().find(|page| Path::new(&page.name) == target);
    match (linked, anchor) {
        (Some(linked), Some(anchor)) if !linked.anchors().iter().any(|own| own == anchor) => {
            Some("there is no such heading")
        }
        _ => None,
    }
}

/// A path without `..`.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => plain.pop().then_some(())?,
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    Some(plain)
}

#[test]
fn a_broken_link_is_found() {
    let page = |name: &str, text: &str| Page { name: name.to_owned(), text: text.to_owned() };
    let text = "# A b\n[a](#a-b) [b](#b) [c](../README.md) [d](none.md) [e](https://example.org) [f](../README.md#no)\n";
    let pages = [page("docs/x.md", text), page("README.md", "# planlab\n")];
    let broken = broken(&super::root(), &pages);
    assert_eq!(broken.len(), 3, "{broken:?}");
    assert!(broken[0].starts_with("docs/x.md:2: #b: "), "{broken:?}");
    assert!(broken[1].contains("none.md: there is no such file"), "{broken:?}");
    assert!(broken[2].contains("README.md#no: there is no such heading"), "{broken:?}");
}
