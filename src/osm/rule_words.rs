//! The words of a rule. A word ends at whitespace, or it is in quotation marks.

/// A word of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RuleWord {
    /// The offset of the word in the rule, in bytes.
    pub at: usize,
    /// The text, without quotation marks.
    pub text: String,
}

/// A reader of the words of a rule.
#[derive(Debug)]
pub(super) struct RuleWords<'r> {
    rule: &'r str,
    /// The offset in bytes of the text that has not been read.
    at: usize,
}

impl<'r> RuleWords<'r> {
    /// Creates a reader of `rule` that begins at the offset `at`.
    pub(super) const fn new(rule: &'r str, at: usize) -> Self {
        Self { rule, at }
    }

    /// Returns the offset in bytes of the text that has not been read.
    pub(super) const fn position(&self) -> usize {
        self.at
    }

    /// Skips whitespace. Returns the unread text, preceded by its offset in the rule in bytes.
    pub(super) fn remaining_text(&mut self) -> (usize, &'r str) {
        let rest = self.rule.get(self.at..).unwrap_or("");
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        (self.at, trimmed)
    }

    /// Whether nothing but whitespace is left.
    pub(super) fn is_done(&mut self) -> bool {
        self.remaining_text().1.is_empty()
    }

    /// Skips `bytes` bytes.
    pub(super) const fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Returns the next word; `None` at the end. The error is the offset of a quotation mark that is never closed, and
    /// a description of the expected text.
    pub(super) fn next(&mut self) -> Result<Option<RuleWord>, (usize, String)> {
        let (at, rest) = self.remaining_text();
        if let Some(quoted) = rest.strip_prefix('"') {
            let (text, len) =
                parse_quoted(quoted).ok_or_else(|| (at, "a closing \"".to_owned()))?;
            self.at += 1 + len;
            return Ok(Some(RuleWord { at, text }));
        }
        let word = rest.split(char::is_whitespace).next().unwrap_or("");
        self.at += word.len();
        let word = RuleWord {
            at,
            text: word.to_owned(),
        };
        Ok(Some(word).filter(|word| !word.text.is_empty()))
    }

    /// Returns all unread text as one word. Fails as [`next`](Self::next) does, and also if text follows the closing
    /// quotation mark.
    pub(super) fn read_rest_as_word(&mut self) -> Result<RuleWord, (usize, String)> {
        let (at, rest) = self.remaining_text();
        if rest.starts_with('"') {
            let word = self.next()?;
            return match (word, self.is_done()) {
                (Some(word), true) => Ok(word),
                _ => Err((self.at, "the end of the rule".into())),
            };
        }
        self.at = self.rule.len();
        let text = rest.trim_end().to_owned();
        Ok(RuleWord { at, text })
    }
}

/// Returns the text before the closing quotation mark, and the number of bytes up to and including that mark. In the
/// text, `\"` stands for a quotation mark. Returns `None` if there is no closing mark.
fn parse_quoted(text: &str) -> Option<(String, usize)> {
    let mut found = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((found, at + 1)),
            '\\' if chars.next_if(|(_, next)| *next == '"').is_some() => found.push('"'),
            char => found.push(char),
        }
    }
    None
}
