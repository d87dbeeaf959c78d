# A formula for a tap: wheels of PyPI in an environment of its own, since onnxruntime cannot be built here.
# `python .ci/manifests` writes version and address, `python .ci/manifests --dist` a copy with the hash in dist/.
class Quaid < Formula
  desc "Memory for AI agents as markdown notes in git"
  homepage "https://github.com/quaid-memory/quaid"
  url "https://github.com/quaid-memory/quaid/releases/download/v0.2.0/quaid-0.2.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "Apache-2.0"

  depends_on "python@3.13"
  uses_from_macos "git"

  def install
    system "python3.13", "-m", "venv", libexec
    system libexec/"bin/python", "-m", "pip", "install", "--prefer-binary", buildpath
    bin.install_symlink libexec/"bin/quaid"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/quaid --version")
    system bin/"quaid", "init", testpath/"vault"
    assert_path_exists testpath/"vault/quaid.toml"
  end
end
