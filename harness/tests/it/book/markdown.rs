//! What the tests know of Markdown: fenced blocks, links and headings.

/// A document.
pub(super) struct Page {
    /// Its path in the repository.
    pub(super) name: String,
    pub(super) text: String,
}

/// A fenced block.
pub(super) struct Block {
    /// The words behind the fence.
    info: Vec<String>,
    /// The line of the fence, from 1.
    pub(super) line: usize,
    pub(super) text: String,
}

impl Block {
    /// Its language, or an empty text.
    pub(super) fn language(&self) -> &str {
        self.info.first().map_or("", String::as_str)
    }

    /// The file that it shows or that the reader is to save, if the fence names one.
    pub(super) fn file(&self) -> Option<&str> {
        self.info.get(1).map(String::as_str)
    }
}

impl Page {
    /// The fenced blocks, in order.
    pub(super) fn blocks(&self) -> Vec<Block> {
        let mut blocks: Vec<Block> = Vec::new();
        let mut is_open = false;
        for (line, number) in self.text.lines().zip(1..) {
            if let Some(info) = line.strip_prefix("```") {
                is_open = !is_open;
                if is_open {
                    let info = info.split_whitespace().map(str::to_owned).collect();
                    blocks.push(Block { info, line: number, text: String::new() });
                }
            } else if let Some(block) = blocks.last_mut().filter(|_| is_open) {
                block.text.push_str(line);
                block.text.push('\n');
            }
        }
        blocks
    }

    /// The anchors of its headings, as GitHub and mdBook make them.
    pub(super) fn anchors(&self) -> Vec<String> {
        let mut anchors: Vec<String> = Vec::new();
        for (_, line) in prose(&self.text).filter(|(_, line)| line.starts_with('#')) {
            let slug = slug(line.trim_start_matches('#').trim());
            let again = anchors.iter().filter(|anchor| **anchor == slug).count();
            anchors.push(if again == 0 { slug } else { format!("{slug}-{again}") });
        }
        anchors
    }
}

/// A heading as an anchor: lower case, without punctuation, with hyphens for spaces.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The lines outside fenced blocks, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_open = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.starts_with("```");
        is_open ^= is_fence;
        !is_open && !is_fence
    })
}

/// The targets of the links and pictures outside code, with their lines.
pub(super) fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        // Every other piece lies between backticks.
        for piece in line.replace("](`", "](").split('`').step_by(2) {
            for rest in piece.split("](").skip(1) {
                if let Some((target, _)) = rest.split_once(')') {
                    found.push((number, target.to_owned()));
                }
            }
        }
    }
    found
}

#[test]
fn page_is_parsed_into_anchors_links_and_blocks() {
    let text = "# One `two`: three\n[a](x.md#y) `[no](link)` ![p](p.svg)\n```sh out\n# not [a](b)\n```\n# One two three\n";
    let page = Page { name: "page.md".to_owned(), text: text.to_owned() };
    assert_eq!(page.anchors(), ["one-two-three", "one-two-three-1"]);
    assert_eq!(links(text), [(2, "x.md#y".to_owned()), (2, "p.svg".to_owned())]);
    let [block] = &page.blocks()[..] else { panic!("one block") };
    assert_eq!((block.language(), block.file(), block.line), ("sh", Some("out"), 3));
    assert_eq!(block.text, "# not [a](b)\n");
}
