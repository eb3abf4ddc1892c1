//! Reading a file, or what it defines.

use lula_protocol::call::ReadFile;
use lula_protocol::output::OutlineSymbol;
use lula_protocol::{Digest, TextOrigin, ToolOutput, ToolOutputDetails};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::error::ToolError;
use super::limits;
use super::picture::{self, PictureHeader};
use super::root::{ToolboxPath, WorkspaceRoot};

/// How far into a file a NUL makes it binary, as git does it.
const LOOKED_AT: usize = 8000;

/// What the number of a line takes where lines are shown with theirs.
const NUMBER: usize = 6;

pub(super) fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(LOOKED_AT)].contains(&0)
}

pub(super) fn file(root: &WorkspaceRoot, asked: &ReadFile) -> Result<ToolOutput, ToolError> {
    let path = ToolboxPath::file(&asked.path)?;
    let content = root.read(&path)?;
    let digest = Digest::of_bytes(&content.bytes);
    let bytes = content.bytes.len() as u64;
    let details = |lines, from_line, to_line, binary, lossy| ToolOutputDetails::File {
        path: path.as_str().to_owned(),
        digest,
        bytes,
        lines,
        from_line,
        to_line,
        binary,
        lossy,
    };
    if is_binary(&content.bytes) {
        if let Some(found) = picture::look(&content.bytes) {
            return Ok(picture_of(&path, &content.bytes, digest, found, asked));
        }
        let text = format!("{path} is binary: {bytes} bytes, {digest}");
        return Ok(ToolOutput::new(text, TextOrigin::Lula).with(details(0, 0, 0, true, false)));
    }
    let (text, lossy) = match String::from_utf8(content.bytes) {
        Ok(text) => (text, false),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
    };
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let count = u32::try_from(lines.len()).unwrap_or(u32::MAX);
    let from = asked.from_line.unwrap_or(1);
    let to = asked.to_line.unwrap_or(count).min(count);
    let whole = asked.from_line.is_none() && asked.to_line.is_none();
    if !whole && (from == 0 || from > to) {
        return Err(ToolError::NoSuchLines {
            path: path.as_str().to_owned(),
            from,
            to: asked.to_line.unwrap_or(count),
            lines: count,
        });
    }
    let wanted = lines
        .get(from.saturating_sub(1) as usize..to as usize)
        .unwrap_or_default();
    let mut shown = String::new();
    let mut last = from.saturating_sub(1);
    let mut truncated = false;
    let (most, number) = match asked.most_bytes {
        Some(most) => (limits::TEXT.min(most as usize), NUMBER),
        None => (limits::TEXT, 0),
    };
    let mut left = most;
    for line in wanted {
        if line.len() + number > left {
            truncated = true;
            if shown.is_empty() {
                shown.push_str(cut(line, most));
                last += 1;
            }
            break;
        }
        shown.push_str(line);
        left -= line.len() + number;
        last += 1;
    }
    let first = if wanted.is_empty() { 0 } else { from };
    let mut output = ToolOutput::new(shown, TextOrigin::Repository)
        .with(details(count, first, last, false, lossy));
    output.truncated = truncated;
    Ok(output)
}

/// What is told of a picture, with its bytes where they are wanted and few enough.
fn picture_of(
    path: &ToolboxPath,
    bytes: &[u8],
    digest: Digest,
    found: PictureHeader,
    asked: &ReadFile,
) -> ToolOutput {
    let PictureHeader {
        media_type,
        width,
        height,
    } = found;
    let most = asked.picture_bytes.unwrap_or(0) as usize;
    let fits =
        bytes.len() <= most.min(limits::PICTURE) && width.max(height) <= limits::PICTURE_SIDE;
    let size = bytes.len();
    let text = format!(
        "{path} is a picture: {media_type}, {width} × {height} pixels, {size} bytes, {digest}"
    );
    let details = ToolOutputDetails::Picture {
        path: path.as_str().to_owned(),
        digest,
        bytes: size as u64,
        media_type: media_type.to_owned(),
        width,
        height,
        base64: fits.then(|| BASE64.encode(bytes)),
    };
    ToolOutput::new(text, TextOrigin::Lula).with(details)
}

/// The beginning of a text, cut between characters.
pub(super) fn cut(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// All of a file that edits work on: text, and nothing else.
pub(super) fn text(root: &WorkspaceRoot, path: &ToolboxPath) -> Result<(String, u32), ToolError> {
    let content = root.read(path)?;
    let text = (!is_binary(&content.bytes))
        .then(|| String::from_utf8(content.bytes).ok())
        .flatten();
    let not_text = || ToolError::NotText {
        path: path.as_str().to_owned(),
    };
    Ok((text.ok_or_else(not_text)?, content.mode))
}

pub(super) fn outline(root: &WorkspaceRoot, path: &str) -> Result<ToolOutput, ToolError> {
    let path = ToolboxPath::file(path)?;
    let (text, _) = text(root, &path)?;
    let Some((symbols, more)) = lula_edit::symbols::list(path.as_str(), &text) else {
        return Err(ToolError::NoOutline {
            path: path.as_str().to_owned(),
        });
    };
    let number = |line: usize| u32::try_from(line).unwrap_or(u32::MAX);
    let symbols: Vec<OutlineSymbol> = symbols
        .into_iter()
        .map(|symbol| OutlineSymbol {
            kind: symbol.kind.to_owned(),
            name: symbol.name,
            from_line: number(symbol.first),
            to_line: number(symbol.last),
            depth: number(symbol.depth),
        })
        .collect();
    let mut shown = String::new();
    for symbol in &symbols {
        use std::fmt::Write as _;
        let indent = "  ".repeat(symbol.depth.min(20) as usize);
        let _ = writeln!(
            shown,
            "{}-{} {indent}{} {}",
            symbol.from_line, symbol.to_line, symbol.kind, symbol.name
        );
    }
    let mut output =
        ToolOutput::new(shown, TextOrigin::Repository).with(ToolOutputDetails::Symbols { symbols });
    output.truncated = more;
    Ok(output)
}
