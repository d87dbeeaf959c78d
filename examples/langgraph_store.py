"""A LangGraph store in a Quaid vault. Run: python examples/langgraph_store.py VAULT"""

import sys

from quaid.integrations.langgraph_store import QuaidStore


def main(vault: str) -> None:
    store = QuaidStore(vault)
    store.put(("maya", "memories"), "coffee", {"text": "Maya takes oat milk in her coffee", "topic": "food"})
    store.put(("maya", "memories"), "move", {"text": "Maya moves to Lisbon in May", "topic": "home"})
    for item in store.search(("maya",), query="Which milk does Maya like?", limit=1):
        print(item.key, item.value)
    for item in store.search(("maya",), filter={"topic": "home"}):
        print(item.key, item.value)
    print(store.list_namespaces())
    store.memory.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
