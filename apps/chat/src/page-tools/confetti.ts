/** A moment of confetti over the page. */
const PIECES = 140;
const LASTS_MS = 2600;

export function confetti(colours = ["#0b6e4f", "#4fd3a0", "#f2bc6c", "#d3a6f2", "#ff9d94"]): Promise<{ pieces: number }> {
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const canvas = document.createElement("canvas");
  canvas.className = "confetti";
  canvas.setAttribute("aria-hidden", "true");
  const paint = canvas.getContext("2d");
  if (!paint || still) return Promise.resolve({ pieces: 0 });
  canvas.width = innerWidth;
  canvas.height = innerHeight;
  document.body.append(canvas);
  const pieces = Array.from({ length: PIECES }, (_, at) => ({
    x: innerWidth / 2,
    y: innerHeight * 0.6,
    dx: (Math.random() - 0.5) * 16,
    dy: -Math.random() * 16 - 4,
    size: 4 + Math.random() * 6,
    turn: Math.random() * 6,
    colour: colours[at % colours.length] ?? "#0b6e4f",
  }));
  const began = performance.now();
  const draw = (now: number) => {
    paint.clearRect(0, 0, canvas.width, canvas.height);
    for (const piece of pieces) {
      piece.dy += 0.45;
      piece.x += piece.dx;
      piece.y += piece.dy;
      piece.dx *= 0.99;
      paint.save();
      paint.translate(piece.x, piece.y);
      paint.rotate(piece.turn + (now - began) / 200);
      paint.fillStyle = piece.colour;
      paint.fillRect(-piece.size / 2, -piece.size / 2, piece.size, piece.size * 0.6);
      paint.restore();
    }
    if (now - began < LASTS_MS) requestAnimationFrame(draw);
    else canvas.remove();
  };
  requestAnimationFrame(draw);
  // A tab that is not seen draws nothing: the canvas goes anyway.
  setTimeout(() => canvas.remove(), LASTS_MS + 500);
  return Promise.resolve({ pieces: PIECES });
}
