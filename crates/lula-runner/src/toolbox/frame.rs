//! What runs between the runner and the toolbox: a length of four bytes, then JSON.

use std::io::{self, Read, Write};

use lula_protocol::{ToolAction, ToolOutput};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::ToolFailure;

/// A request to the toolbox in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolboxRequest {
    /// Repeated in the reply.
    pub number: u64,
    pub ask: ToolboxQuestion,
}

/// What the toolbox is asked to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolboxQuestion {
    /// Carry the action out.
    Do(ToolAction),
    /// Tell what doing it would change, and change nothing.
    Plan(ToolAction),
    /// Put files back as they were.
    PutBack(Vec<FileImage>),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolboxAnswer {
    /// The action was carried out.
    Output(ToolOutput),
    /// What would be changed.
    Plan(ToolboxPlan),
    /// Files are as they were.
    PutBack,
}

/// What an action would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolboxPlan {
    /// As a unified diff.
    pub diff: String,
    /// Whether the diff was cut.
    pub truncated: bool,
    /// The files as they are.
    pub images: Vec<FileImage>,
}

/// A file as it is: enough to put it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileImage {
    /// Path inside the workspace.
    pub path: String,
    /// What it holds, in base64, and its permissions; nothing where there is none.
    pub content: Option<(String, u32)>,
    /// Directories above it that are not there, the lowest first.
    pub missing: Vec<String>,
}

/// A reply of the toolbox in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolboxReply {
    /// The number of the request.
    pub number: u64,
    /// What came of it.
    pub answer: Result<ToolboxAnswer, ToolFailure>,
}

/// The bytes of one frame, or nothing where it would be larger than `most`.
pub fn encode<T: Serialize>(value: &T, most: usize) -> io::Result<Vec<u8>> {
    let body = serde_json::to_vec(value)?;
    let length = u32::try_from(body.len())
        .ok()
        .filter(|_| body.len() <= most);
    let length = length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "too large"))?;
    let mut frame = Vec::with_capacity(4 + body.len());
    frame.extend(length.to_be_bytes());
    frame.extend(body);
    Ok(frame)
}

/// Takes one frame from the front of `buffer`; `None` where more has to arrive first. Anything
/// that is no frame of the kind is an error, and nothing after it can be trusted.
pub fn decode<T: DeserializeOwned>(buffer: &mut Vec<u8>, most: usize) -> io::Result<Option<T>> {
    let Some((head, rest)) = buffer.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let length = checked(*head, most)?;
    let Some(body) = rest.get(..length) else {
        return Ok(None);
    };
    let value = serde_json::from_slice(body)?;
    buffer.drain(..4 + length);
    Ok(Some(value))
}

fn checked(head: [u8; 4], most: usize) -> io::Result<usize> {
    usize::try_from(u32::from_be_bytes(head))
        .ok()
        .filter(|length| *length <= most)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a frame beyond its limit"))
}

pub(super) fn write<T: Serialize>(
    output: &mut impl Write,
    value: &T,
    most: usize,
) -> io::Result<()> {
    output.write_all(&encode(value, most)?)?;
    output.flush()
}

/// `None` where the input ends between two frames.
pub(super) fn read<T: DeserializeOwned>(
    input: &mut impl Read,
    most: usize,
) -> io::Result<Option<T>> {
    let mut head = [0; 4];
    if input.read(&mut head[..1])? == 0 {
        return Ok(None);
    }
    input.read_exact(&mut head[1..])?;
    let mut body = vec![0; checked(head, most)?];
    input.read_exact(&mut body)?;
    Ok(Some(serde_json::from_slice(&body)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_frame_is_taken_only_when_all_of_it_is_there() {
        let reply = ToolboxReply {
            number: 7,
            answer: Err(ToolFailure {
                code: lula_protocol::Code::NothingThere,
                message: "no".into(),
            }),
        };
        let frame = encode(&reply, 1000).unwrap();
        let mut buffer = Vec::new();
        for byte in &frame[..frame.len() - 1] {
            buffer.push(*byte);
            assert!(decode::<ToolboxReply>(&mut buffer, 1000).unwrap().is_none());
        }
        buffer.push(frame[frame.len() - 1]);
        buffer.push(0);
        assert_eq!(
            decode::<ToolboxReply>(&mut buffer, 1000).unwrap(),
            Some(reply)
        );
        assert_eq!(buffer, [0], "what follows stays");
    }

    #[test]
    fn an_endless_frame_is_refused_before_it_arrives() {
        let mut buffer = vec![0xff, 0xff, 0xff, 0xff];
        assert!(decode::<ToolboxReply>(&mut buffer, 1 << 20).is_err());
    }

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(bytes: Vec<u8>) {
            let mut buffer = bytes;
            let _ = decode::<ToolboxReply>(&mut buffer, 1 << 16);
        }
    }
}
