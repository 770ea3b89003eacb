// Stands in for Mermaid until a page has a diagram: the library has 2.5 MB. The theme calls `initialize`, then `render`.
(() => {
  const library = new URL("vendor/mermaid/mermaid.tiny.js", document.currentScript.src);
  const standIn = {
    initialize(options) {
      standIn.loaded = new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.src = library;
        script.onload = () => resolve(window.mermaid);
        script.onerror = reject;
        document.head.append(script);
      }).then((mermaid) => {
        mermaid.initialize(options);
        return mermaid;
      });
    },
    async render(id, text) {
      return (await standIn.loaded).render(id, text);
    },
  };
  window.mermaid = standIn;
})();
