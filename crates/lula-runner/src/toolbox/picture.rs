//! What the first bytes of a file say of a picture: its format, and how large it is. Nothing is decoded.

/// A format that models take, and the size of the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PictureHeader {
    pub(super) media_type: &'static str,
    pub(super) width: u32,
    pub(super) height: u32,
}

/// Looks whether a file is a picture; `None` also where its size cannot be told.
pub(super) fn look(bytes: &[u8]) -> Option<PictureHeader> {
    let (media_type, size) = match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => ("image/png", png(bytes)),
        [0xff, 0xd8, 0xff, ..] => ("image/jpeg", jpeg(bytes)),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => ("image/gif", gif(bytes)),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => ("image/webp", webp(bytes)),
        _ => return None,
    };
    let (width, height) = size.filter(|(width, height)| *width > 0 && *height > 0)?;
    Some(PictureHeader {
        media_type,
        width,
        height,
    })
}

fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    let number = |at| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    (bytes.get(12..16)? == b"IHDR").then_some((number(16)?, number(20)?))
}

fn gif(bytes: &[u8]) -> Option<(u32, u32)> {
    let number = |at| {
        Some(u32::from(u16::from_le_bytes(
            *bytes.get(at..)?.first_chunk()?,
        )))
    };
    Some((number(6)?, number(8)?))
}

/// The size stands in the first frame header, behind segments that each tell their length.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let number = |at| Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    let mut at = 2_usize;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        let mark = *bytes.get(at + 1)?;
        match mark {
            // A mark may be filled up with further bytes.
            0xff => at += 1,
            0x01 | 0xd0..=0xd7 => at += 2,
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Some((number(at + 7)?.into(), number(at + 5)?.into()));
            }
            _ => {
                let length = number(at + 2)?;
                at = at.checked_add(2)?.checked_add(length.max(2).into())?;
            }
        }
    }
}

/// Of each of the three kinds: lossy, lossless, extended.
fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    let small = |at| {
        Some(u32::from(u16::from_le_bytes(
            *bytes.get(at..)?.first_chunk()?,
        )))
    };
    match bytes.get(12..16)? {
        b"VP8 " => Some((small(26)? & 0x3fff, small(28)? & 0x3fff)),
        b"VP8L" => {
            let bits = u32::from_le_bytes(*bytes.get(21..)?.first_chunk()?);
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8X" => {
            let three = |at: usize| {
                let [a, b, c] = *bytes.get(at..)?.first_chunk()?;
                Some(u32::from_le_bytes([a, b, c, 0]) + 1)
            };
            Some((three(24)?, three(27)?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seen(bytes: &[u8]) -> Option<(&'static str, u32, u32)> {
        look(bytes).map(|found| (found.media_type, found.width, found.height))
    }

    #[test]
    fn each_format_tells_its_size() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x03\x20\0\0\x02\x58";
        assert_eq!(seen(png), Some(("image/png", 800, 600)));
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc0\0\x11\x08\x02\x58\x03\x20";
        assert_eq!(seen(jpeg), Some(("image/jpeg", 800, 600)));
        let gif = b"GIF89a\x20\x03\x58\x02";
        assert_eq!(seen(gif), Some(("image/gif", 800, 600)));
        let mut webp = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0".to_vec();
        webp.extend([0x1f, 0x03, 0, 0x57, 0x02, 0]);
        assert_eq!(seen(&webp), Some(("image/webp", 800, 600)));
    }

    #[test]
    fn what_only_begins_like_one_is_none() {
        let cut = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0";
        let empty = b"GIF89a\0\0\0\0";
        let nowhere = b"\xff\xd8\xff\xe0\xff\xff";
        for bytes in [&cut[..], empty, nowhere, b"", b"RIFF\0\0\0\0WEBPnone"] {
            assert_eq!(seen(bytes), None, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(start in 0_usize..5, rest: Vec<u8>) {
            let starts: [&[u8]; 5] =
                [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF1234WEBPVP8X", b""];
            let mut bytes = starts[start].to_vec();
            bytes.extend(rest);
            let _ = look(&bytes);
        }
    }
}
