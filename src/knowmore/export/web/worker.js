// Answers about pictures, apart from the page, so that it stays at hand meanwhile.

let answer;

// The first message has the model and the network; then come pictures, each with a number.
self.onmessage = ({data: {model, described, weights, number, picture}}) => {
  try {
    if (model) {
      const text = atob(weights), bytes = new Uint8Array(text.length);
      for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
      const look = network(described, new Float32Array(bytes.buffer)), predict = predictor(model);
      answer = (given) => {
        const small = thumbnail(given, described.longest);
        return predict([look(resized(small, described.size, described.size, centre(small, described.crop)))])[0];
      };
      self.postMessage({number: 0});
      return;
    }
    const start = performance.now();
    self.postMessage({number, result: answer(picture), milliseconds: performance.now() - start});
  } catch (error) {
    self.postMessage({number: number ?? 0, problem: error.message});
  }
};
