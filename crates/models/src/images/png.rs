//! The smallest PNG writer: true colour, one stored block per line, no
//! compression.

/// A picture of these pixels.
pub(super) fn png(width: u32, height: u32, pixel: impl Fn(u32, u32) -> [u8; 3]) -> Vec<u8> {
    let mut header = Vec::new();
    header.extend(width.to_be_bytes());
    header.extend(height.to_be_bytes());
    // Eight bits, true colour, the only compression and filter, no interlace.
    header.extend([8, 2, 0, 0, 0]);

    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut file, b"IHDR", &header);
    chunk(&mut file, b"IDAT", &pixels(width, height, pixel));
    chunk(&mut file, b"IEND", &[]);
    file
}

fn chunk(file: &mut Vec<u8>, name: &[u8; 4], data: &[u8]) {
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    file.extend(length.to_be_bytes());
    let start = file.len();
    file.extend(name);
    file.extend(data);
    let sum = crc(&file[start..]);
    file.extend(sum.to_be_bytes());
}

/// A zlib stream of stored blocks. A line is shorter than the 65,535 bytes
/// that a block can hold, because the painter keeps sides short.
fn pixels(width: u32, height: u32, pixel: impl Fn(u32, u32) -> [u8; 3]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let (mut low, mut high) = (1u32, 0u32);
    for y in 0..height {
        // Each line begins with its filter, which is none.
        let mut line = vec![0];
        line.extend((0..width).flat_map(|x| pixel(x, y)));
        for byte in &line {
            low = (low + u32::from(*byte)) % 65_521;
            high = (high + low) % 65_521;
        }
        let length = u16::try_from(line.len()).unwrap_or(u16::MAX);
        stream.push(u8::from(y + 1 == height));
        stream.extend(length.to_le_bytes());
        stream.extend((!length).to_le_bytes());
        stream.extend(line);
    }
    stream.extend(((high << 16) | low).to_be_bytes());
    stream
}

fn crc(bytes: &[u8]) -> u32 {
    let step = |sum: u32| if sum & 1 == 1 { 0xedb8_8320 ^ (sum >> 1) } else { sum >> 1 };
    let add = |sum: u32, byte: &u8| (0..8).fold(sum ^ u32::from(*byte), |sum, _| step(sum));
    !bytes.iter().fold(u32::MAX, add)
}
