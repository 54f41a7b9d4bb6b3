"""Understanding English without a model: words, a twin's vocabulary, a grammar, readings."""
