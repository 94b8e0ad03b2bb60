//! Documents that ask for far more than they weigh (row X5): they are read by
//! a process of its own, and only that one dies.

use reqwest::Method;

use crate::gateway::{Gateway, ask};

/// More than a reader may have.
const INFLATED: usize = 1 << 30;

/// `INFLATED` zeros as a deflate stream: one literal, then copies of 258 bytes.
fn zeros() -> Vec<u8> {
    let mut bits = Bits { bytes: vec![0x78, 0x01], used: 0 };
    bits.push(0b011, 3);
    bits.push(u32::from(0b0011_0000_u8.reverse_bits()), 8);
    let copies = (INFLATED - 1) / 258;
    for _ in 0..copies {
        bits.push(u32::from(0b1100_0101_u8.reverse_bits()), 8);
        bits.push(0, 5);
    }
    bits.push(0, 7);
    let sum = ((1 + copies * 258) % 65_521) << 16 | 1;
    let mut bytes = bits.bytes;
    bytes.extend(u32::try_from(sum).unwrap().to_be_bytes());
    bytes
}

struct Bits {
    bytes: Vec<u8>,
    used: u32,
}

impl Bits {
    fn push(&mut self, value: u32, count: u32) {
        for bit in (0..count).map(|n| value >> n & 1) {
            if self.used == 0 {
                self.bytes.push(0);
            }
            *self.bytes.last_mut().unwrap() |= u8::try_from(bit << self.used).unwrap();
            self.used = (self.used + 1) % 8;
        }
    }
}

/// A PDF of one page with this content.
fn pdf(content: &[u8]) -> Vec<u8> {
    let stream = format!("<< /Length {} /Filter /FlateDecode >>\nstream\n", content.len());
    let objects: [Vec<u8>; 4] = [
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_vec(),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 100 100] /Resources << >> /Contents 4 0 R >>".to_vec(),
        [stream.as_bytes(), content, b"\nendstream"].concat(),
    ];
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut table = "xref\n0 5\n0000000000 65535 f \n".to_owned();
    for (n, object) in objects.iter().enumerate() {
        table += &format!("{:010} 00000 n \n", file.len());
        file.extend(format!("{} 0 obj\n", n + 1).bytes());
        file.extend(object);
        file.extend(b"\nendobj\n");
    }
    let end = format!("{table}trailer\n<< /Size 5 /Root 1 0 R >>\nstartxref\n{}\n%%EOF\n", file.len());
    file.extend(end.bytes());
    file
}

#[tokio::test]
async fn x5_a_pdf_that_unpacks_to_a_gigabyte_is_refused_and_harms_nobody() {
    let gateway = Gateway::start().await;
    let upload = |content: &[u8]| {
        let request = gateway.secret(Method::POST, "/api/knowledge?title=Bomb");
        request.header("content-type", "application/pdf").body(pdf(content))
    };
    let (status, said) = ask(upload(&zeros())).await;
    assert_eq!(status, 415, "{said}");
    let text = said["error"]["message"].as_str().unwrap();
    assert_eq!(text, "The document cannot be read: it needs too much memory or time");
    assert!(gateway.get("/api/knowledge").await["documents"].as_array().unwrap().is_empty());
    // The same frame around nothing is read, and has no text.
    let empty = [0x78, 0x01, 0x03, 0x00, 0x00, 0x00, 0x00, 0x01];
    let (status, said) = ask(upload(&empty)).await;
    assert_eq!(status, 415, "{said}");
    let text = said["error"]["message"].as_str().unwrap();
    assert_eq!(text, "The document cannot be read: there is no text in it");
}
